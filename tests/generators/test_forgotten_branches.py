"""What a suite must try of modes, of NaN behind a length, of axes that depend on one another: wrong answers are judged by it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.generators.test_draws import SHAPE, made, placed, tensor, with_inputs

from pypto_op.backends.reference import ReferenceSession
from pypto_op.generators.cases import suite as suite_cases
from pypto_op.generators.cases import whole_numbers
from pypto_op.generators.operator.sources import gather
from pypto_op.generators.rehearsing.first_candidate import Draw, FirstCandidate
from pypto_op.generators.rehearsing.rehearsal import Offers, rehearse
from pypto_op.generators.rehearsing.trying import Tried, answered
from pypto_op.workspace import OpWorkspace

Kernel = Callable[..., torch.Tensor]

MODES = """
def op_golden(x, y, eps, swap):
    near = (x - y + eps) ** 2
    return near.minimum((2.0 * y - x + eps) ** 2) if swap == 1 else near
"""
"""To exchange x and y changes what eps does, by less than a rounding where eps is small: the golden hardly minds."""

APART = """
def op_golden(x, y, eps, swap):
    length = ((x - y + eps) ** 2).sum(-1, keepdim=True).sqrt()
    both = ((x * x).sum(-1, keepdim=True) + (y * y).sum(-1, keepdim=True)).sqrt()
    return (length - both) * (2.0 if swap == 1 else 1.0) + 0.0 * x
"""
"""Where the lengths nearly agree, what the exchange of x and y changes is rounding, and yet more than 1e-5 of the result."""

LENGTHS = """
import torch

def op_golden(x, length):
    return torch.where(torch.arange(x.shape[0]).unsqueeze(1) < length, x, torch.zeros_like(x))
"""


def modes(folder: Path, **front: Any) -> OpWorkspace:
    """Return an operator with a float scalar and a switch."""
    scalars = [{"name": "eps", "shape": [], "dtype": "float32"}, {"name": "swap", "shape": [], "dtype": "int"}]
    said = {"shape_constraints": ["0 <= swap <= 1", "0 < eps <= 0.01"], "default_params": {"eps": 1e-6, "swap": 0}}
    ws = placed(folder, [tensor("x"), tensor("y"), *scalars], **{**said, **front})
    ws.golden.write_text(MODES)
    return ws


def tried(ws: OpWorkspace, *beginnings: str) -> list[dict[str, Any]]:
    """Return the cases of the suite whose ids begin so, as the rehearsal keeps them."""
    sources = with_inputs(ws)
    maker = suite_cases.filled(sources)
    cases = [case for case in maker.cases if case["id"].startswith(beginnings)]
    offers = Offers(instead=maker.in_place_of, stays=partial(whole_numbers.stays, sources))
    return rehearse(ws, cases, sources.spec.policy(), scalars=sources.scalars, offers=offers).cases


def refusing(ws: OpWorkspace, cases: list[dict[str, Any]], kernel: Kernel) -> list[str]:
    """Return the ids of the cases that refuse what a kernel answers."""
    with ReferenceSession(ws) as session:
        first = FirstCandidate(session, ws, gather(ws).spec.policy())
        found = []
        for case in cases:
            one = answered(first, case)
            assert isinstance(one, Tried), one
            answer = kernel(*one.inputs.values())
            if not Draw(first, one.case, one.inputs, one.native).takes([answer]):
                found.append(case["id"])
        return found


def distance(x: torch.Tensor, y: torch.Tensor, eps: float, swap: int, *, swapped_eps: float = 1.0) -> torch.Tensor:
    """Return what the golden does, with another eps behind the switch."""
    near = (x - y + eps) ** 2
    return near.minimum((2.0 * y - x + swapped_eps * eps) ** 2).to(x.dtype) if swap == 1 else near.to(x.dtype)


def test_a_switch_is_tried_where_the_golden_hardly_minds_which_input_is_which(tmp_path: Path) -> None:
    """A triplet loss that never swapped passed: "a wrong kernel would pass it" left out each case of swap."""
    ws = modes(tmp_path, supported_dtypes=["float32"], default_params={"eps": 2e-7, "swap": 0})
    ws.golden.write_text(APART)
    cases = [case for case in tried(ws, "L3_swap_1") if "eps" not in case]
    assert [case["swap"] for case in cases] == [1]
    space: dict[str, Any] = {}
    exec(APART, space)  # noqa: S102
    assert refusing(ws, cases, lambda x, y, eps, swap: space["op_golden"](x, y, eps, 0))
    assert refusing(ws, cases, lambda x, y, eps, swap: space["op_golden"](y, x, eps, swap)) == []


@pytest.mark.parametrize(("share", "refused"), [(0.0, True), (-1.0, True), (1.0, False)])
def test_the_branch_behind_a_switch_meets_other_floats(share: float, refused: bool, tmp_path: Path) -> None:
    """A triplet loss that forgot eps under swap passed: another eps stood beside swap = 0 alone."""
    ws = modes(tmp_path)
    cases = tried(ws, "L3_swap_1_")
    assert bool(refusing(ws, cases, partial(distance, swapped_eps=share))) is refused


def test_a_nan_lies_among_what_is_read_and_among_what_is_not(tmp_path: Path) -> None:
    """A paged gather that multiplied rows behind the length by 0 passed: the one NaN lay where nothing pointed."""
    ports = [tensor("x"), tensor("length", "int32", ("D",))]
    body = "\n## 9. Edge cases\n\n- A NaN in x counts in its row only.\n"
    ws = placed(tmp_path, ports, body=body, shape_constraints=["0 <= length <= S"])
    ws.golden.write_text(LENGTHS)
    cases = tried(ws, "L5_some_nan")
    assert cases
    mask = lambda x, length: (torch.arange(x.shape[0]).unsqueeze(1) < length).to(x.dtype)  # noqa: E731
    assert refusing(ws, cases, lambda x, length: x * mask(x, length))
    assert refusing(ws, cases, lambda x, length: torch.where(mask(x, length) > 0, x.nan_to_num(0.0), 0.0).to(x.dtype))
    assert refusing(ws, cases, lambda x, length: torch.where(mask(x, length) > 0, x, 0.0).to(x.dtype)) == []


def test_some_nan_that_leave_next_to_nothing_are_left_out(tmp_path: Path) -> None:
    """A sum over all rows is NaN almost everywhere, and one NaN alone said how far it reaches."""
    ports = [tensor("x"), tensor("length", "int32", ("D",))]
    body = "\n## 9. Edge cases\n\n- A NaN in x counts in its column.\n"
    ws = placed(tmp_path, ports, body=body, shape_constraints=["0 <= length <= S"])
    ws.golden.write_text("def op_golden(x, length):\n    return x * 1.0 + x.sum()\n")
    assert {case["draw_zone"]["x"] for case in tried(ws, "L5_one_nan", "L5_some_nan")} == {"one_nan"}


@pytest.mark.parametrize("says", ["", "\n## 9. Edge cases\n\n- A NaN in x stays in its row.\n"])
def test_some_nan_only_where_whole_numbers_point_and_spec_speaks_of_nan(says: str, tmp_path: Path) -> None:
    for folder, other, points in (("a", tensor("y"), False), ("b", tensor("row", "int32"), True)):
        ws = placed(tmp_path / folder, [tensor("x"), other], body=says, shape_constraints=["0 <= row < S"] if points else [])
        found = [case["draw_zone"] for case in suite_cases.cases(gather(ws)) if "some_nan" in str(case.get("draw_zone"))]
        assert found == ([{"x": "some_nan"}] if points and says else [])


@pytest.mark.parametrize("shape", [("S", "D"), ("S",), ("S", "D", "S")])
def test_some_nan_are_few_and_one_in_a_row(shape: tuple[str, ...], tmp_path: Path) -> None:
    x = made(placed(tmp_path, [tensor("x", shape=shape), tensor("y")]), draw_zone={"x": "some_nan"})["x"]
    in_rows = x.reshape(-1, x.shape[-1] if x.dim() > 1 else 1).isnan().sum(-1)
    assert set(in_rows.tolist()) <= {0, 1}
    assert in_rows[[0, in_rows.numel() // 2, -1]].tolist() == [1, 1, 1], "an index of -1 reads the first row, or the last one"
    assert 0.05 < float(in_rows.double().mean()) < 0.6


def test_fixed_axes_that_an_equality_ties_grow_together(tmp_path: Path) -> None:
    """A linear layer whose groups from the ninth on did not count passed: neither K nor K / 32 could grow alone."""
    ports = [tensor("x", shape=("S", "K")), tensor("scale", shape=("KG", "D"))]
    shapes = [{"S": 32, "K": 128, "KG": 4, "D": 64}, {"S": 16, "K": 256, "KG": 8, "D": 64}]
    cases = suite_cases.cases(
        gather(placed(tmp_path, ports, p0_shapes=shapes, shape_constraints=["K % 64 == 0", "KG * 32 == K"]))
    )
    assert all(case["shape"]["KG"] * 32 == case["shape"]["K"] for case in cases)
    assert max(case["shape"]["KG"] for case in cases) > 8
    [base] = [case["shape"] for case in cases if case["id"] == "L2_base_float32"]
    named = [case for case in cases if case["id"].startswith(("L3_KG_", "L3_K_"))]
    assert named and all(case["shape"] != base for case in named), "a case that is about an axis changes it"


@pytest.mark.parametrize(("said", "odd"), [("1 <= window <= 4096", True), ("1 <= window", True), ("window % 2 == 0", False)])
def test_a_whole_number_between_the_ends_is_odd_where_that_is_legal(said: str, odd: bool, tmp_path: Path) -> None:
    """A window that was halved, or rounded to tiles, passed: 1000, 64 and 1 hide it."""
    ports = [tensor("x"), {"name": "window", "shape": [], "dtype": "int"}]
    front = {"shape_constraints": [said, "window >= 1"], "default_params": {"window": 24}}
    ends = whole_numbers.whole_ends(gather(placed(tmp_path, ports, **front)), "window", SHAPE)
    [between] = [window for window in ends if 1 < window < max(ends)]
    assert bool(between % 2) is odd


@pytest.mark.parametrize("order", ["rising", ""])
def test_a_part_that_offsets_cut_has_more_than_32_steps(order: str, tmp_path: Path) -> None:
    """A mean of segments whose rows from the 1025th on did not count passed: no segment was longer than 511."""
    ports = [tensor("x"), tensor("offsets", "int32", ("N + 1",))]
    front = {"p0_shapes": [{"S": 256, "D": 64, "N": 8}], "dynamic_axes": ["S", "N"], "shape_constraints": ["0 <= offsets <= S"]}
    rows = {"input_ranges": {"offsets": {"row_order": order}}} if order else {}
    ws = placed(tmp_path, ports, **front, **rows)
    cases = [case for case in suite_cases.cases(gather(ws)) if "long_parts" in case["id"]]
    assert len(cases) == bool(order)
    for case in cases:
        step = gather(ws).steps_along("S")[0]
        drawn = [made(ws, **{**case, "seed": seed})["offsets"] for seed in range(8)]
        assert max(int((offsets[1:] - offsets[:-1]).max()) for offsets in drawn) > 32 * step
