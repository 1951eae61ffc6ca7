"""A suite has a case in which all floating tensors are small at once, wherever right kernels pass it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.generators.test_draws import placed, tensor
from tests.generators.test_forgotten_branches import refusing

from pypto_op.generators.cases import suite as suite_cases
from pypto_op.generators.cases.case_maker import Maker
from pypto_op.generators.evaluation import inputs_text
from pypto_op.generators.operator.sources import gather
from pypto_op.generators.rehearsing.rehearsal import Offers, Rehearsed, rehearse
from pypto_op.generators.rehearsing.smallness import small
from pypto_op.workspace import OpWorkspace

GOLDEN = "import torch\n\n\ndef chain_golden(x, y):\n    return {result}\n"
FLOORED = "x / (y * y).mean(){floor}.sqrt() / 8"


def tried(bare: OpWorkspace, result: str) -> Rehearsed:
    """Rehearse the cases whose sizes come near, and what is offered beside them."""
    bare.golden.write_text(GOLDEN.format(result=result))
    sources = gather(bare)
    bare.test_inputs.write_text(inputs_text(sources))
    maker = suite_cases.filled(sources)
    cases = [case for case in maker.cases if case["id"].startswith(("L2_base", "L5_tiny", "L5_huge"))]
    return rehearse(bare, cases, sources.spec.policy(), offers=Offers(small=partial(small, maker)))


@pytest.mark.slow
def test_a_floor_under_a_mean_shows_where_all_is_small(bare: OpWorkspace) -> None:
    """An adafactor_step whose mean had a floor passed a whole suite: next to 1e-4 its squares are above it."""
    cases = tried(bare, FLOORED.format(floor="")).cases

    def kernel(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.as_tensor(eval(FLOORED.format(floor=".clamp(min=1e-10)"), {"x": x, "y": y}))  # noqa: S307

    assert refusing(bare, cases, kernel) == ["L5_all_small"]


COUNTED = "(x + y) * (torch.arange(x.shape[-1]) * 101 % 1009 / 1009.0)"


@pytest.mark.slow
def test_where_a_golden_counts_in_whole_numbers_a_kernel_that_does_not_is_as_right_beside_small_inputs(bare: OpWorkspace) -> None:
    """A linear resampling with places in float32 was refused, beside small inputs alone."""
    cases = tried(bare, COUNTED).cases

    def kernel(x: torch.Tensor, y: torch.Tensor, step: float = 101.0 / 1009.0) -> torch.Tensor:
        return (x + y) * torch.remainder(torch.arange(x.shape[-1], dtype=torch.float32) * step, 1.0)

    assert "L5_all_small" not in refusing(bare, cases, kernel)
    assert "L5_all_small" in refusing(bare, cases, partial(kernel, step=101.0 / 1008.0))
    assert "L5_all_small" in refusing(bare, cases, lambda x, y: kernel(x, y) + 1e-7)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("result", "why"),
    [
        ("x * x * x * x * y * 1e3", "numbers on the way leave float32 at its lower end"),
        ("(x + 2.0**15 * x) - 2.0**15 * x + 1e-3 * y", "right kernels may keep other digits there than the golden"),
    ],
)
def test_where_right_kernels_part_there_is_no_such_case(bare: OpWorkspace, result: str, why: str) -> None:
    done = tried(bare, result)
    assert not any("all_small" in case["id"] for case in done.cases)
    assert done.dropped["L5_all_small"] == why


RANGES = [
    ({}, {"x", "y"}),
    ({"y": "[0, inf)"}, {"x", "y"}),
    ({"y": "(-inf, 0]"}, {"x", "y"}),
    ({"y": "[0.5, inf)"}, {"x"}),
    ({"y": "[0, 1]"}, {"x"}),  # folded at two ends, what is so small becomes 0
    ({"y": {"row_length": 1}}, {"x"}),
]


@pytest.mark.parametrize(("said", "names"), RANGES)
def test_what_spec_forbids_to_be_small_stays(tmp_path: Path, said: dict[str, Any], names: set[str]) -> None:
    maker = Maker(gather(placed(tmp_path, [tensor("x"), tensor("y")], input_ranges=said)))
    assert {frozenset(case["draw_scale"]) for case in small(maker)} == {frozenset(names)}


EPS = [("1e-30 <= eps <= 0.001", 1e-30), ("0 < eps <= 0.001", 1e-6 * 2.0**-27), ("0 <= eps", 1e-6 * 2.0**-27), ("eps < 1", None)]


@pytest.mark.parametrize(("said", "least"), EPS)
def test_a_guard_is_as_small_as_spec_allows(tmp_path: Path, said: str, least: float | None) -> None:
    """Beside an eps of 1e-6 no square of what is small counts."""
    ports = [tensor("x"), {"name": "eps", "shape": [], "dtype": "float32"}]
    sources = gather(placed(tmp_path, ports, shape_constraints=[said], default_params={"eps": 1e-6}))
    assert [case.get("eps") for case in small(Maker(sources))] == ([least, None] * 4 if least else [None] * 4)


def test_float16_holds_no_such_numbers(tmp_path: Path) -> None:
    front = {"supported_dtypes": ["float16"], "tolerance": {"float16": {"atol": 1e-3, "rtol": 1e-2}}}
    assert not list(small(Maker(gather(placed(tmp_path, [tensor("x", "float16")], **front)))))
