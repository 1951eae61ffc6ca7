"""The second pass puts extremes at the ends of axes, and numbers of the files among the values."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from pypto_op.triton.run.inputs import edges, literals, skewed

DRAWS = torch.Generator().manual_seed(0)
NORMAL = torch.randn(40, 50, generator=DRAWS)
SQUARE = NORMAL[:, :40]


@pytest.mark.parametrize(
    "tensor",
    [NORMAL, NORMAL.half(), NORMAL.t(), NORMAL[:, ::2], NORMAL.abs()],
    ids=["float32", "half", "columns", "gaps", "positive"],
)
def test_extremes_come_first_and_last_by_turns(tensor: torch.Tensor) -> None:
    before = tensor.clone()
    (moved,) = edges.edged([tensor], [True], [], 1)
    assert torch.equal(tensor, before) and (moved.stride(), moved.dtype) == (tensor.stride(), tensor.dtype)
    assert tensor.min() <= moved.min() and moved.max() <= tensor.max()
    last = moved.shape[1] - 1
    inner = moved[1:-1]
    assert {*inner[0::2].argmax(1).tolist()} == {last} == {*inner[1::2].argmin(1).tolist()}
    assert {*inner[0::2].argmin(1).tolist()} == {0} == {*inner[1::2].argmax(1).tolist()}


def test_between_the_ends_every_fourth_element_is_a_new_largest_or_least_one() -> None:
    (moved,) = edges.edged([NORMAL], [True], [], 1)
    places = [place for place in range(1, 49) if place % 4 == 3]
    for row, values in enumerate(moved[:, 1:-1].tolist(), 0):
        ranked = [value if row % 2 else -value for value in values]
        assert [place + 1 for place in range(48) if ranked[place] > max(ranked[:place], default=-9.0)][
            -len(places) + 1 :
        ] == places[1:]
    masked = torch.where(NORMAL > 1, NORMAL, 0.0)
    (kept,) = edges.edged([masked], [True], [], 1)
    assert torch.equal(kept == 0, masked == 0)


@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize(
    "tensor", [NORMAL[:, :40], NORMAL[:, :40].half(), NORMAL[:, :40].t()], ids=["float32", "half", "columns"]
)
def test_the_extremes_of_rows_lie_all_over_them(tensor: torch.Tensor, last: bool) -> None:
    before = tensor.clone()
    (moved,) = edges.scattered([tensor], [True], 1, last=last)
    assert torch.equal(tensor, before) and (moved.stride(), moved.dtype) == (tensor.stride(), tensor.dtype)
    axis = 1 if last else 0
    assert torch.equal(moved.sort(axis).values, tensor.sort(axis).values)
    assert sorted(moved.argmax(axis).tolist()) == [*range(40)] or tensor.dtype is torch.float16
    assert len({*moved.argmin(axis).tolist()}) > 35


def test_rows_of_ordered_tensors_stay() -> None:
    for left in (NORMAL.sort(dim=-1).values, NORMAL.repeat(1, 2), NORMAL.tril(), NORMAL[:7, :7]):
        assert torch.equal(edges.scattered([left], [True], 1, last=True)[0], left)
    assert torch.equal(edges.scattered([NORMAL], [False], 1, last=True)[0], NORMAL)


def test_what_is_ordered_short_or_zero_is_left() -> None:
    symmetric, row = NORMAL[:40, :40] + NORMAL[:40, :40].T, NORMAL[0]
    for left in (symmetric, row.sort().values, NORMAL.sort(dim=0, descending=True).values, row.expand(7, 50)):
        assert edges.edged([left], [True], [0.25], 1) is None
    half = NORMAL.half()
    for twice in (torch.cat([half, half], -1), half.repeat_interleave(2, 0), NORMAL.repeat(3, 1), NORMAL[:, :20].repeat(1, 3)):
        assert edges.edged([twice], [True], [0.25], 1) is None
    short = NORMAL[:7, :7]
    assert torch.equal(edges.edged([short], [True], [], 1)[0], short)
    assert edges.edged([NORMAL], [False], [], 1) is None
    (triangle,) = edges.edged([NORMAL.tril()], [True], [0.25], 1)
    assert bool((triangle.triu(1) == 0).all())


@pytest.mark.parametrize("tensor", [NORMAL, NORMAL.half(), NORMAL.t()], ids=["float32", "half", "columns"])
def test_numbers_of_the_files_are_met_exactly_where_the_dtype_has_them(tensor: torch.Tensor) -> None:
    (moved,) = edges.edged([tensor], [True], [-0.5, 0.0, 0.1, 0.25, 77.0], 1)
    assert all(bool((moved == number).any()) for number in (-0.5, 0.0, 0.25))
    assert float(moved.max()) < 77


def test_a_scale_holds_the_numbers_alone() -> None:
    spread = NORMAL.abs() + 0.01
    moved, other = edges.edged([NORMAL, spread], [True, False], [1.0], 1, scales=[True, True]) or []
    assert bool((moved == 1.0).any()) and int((other == 1.0).sum()) == 1 == int((other != spread).sum())


def test_numbers_have_many_places_where_outputs_are_few() -> None:
    (often,) = edges.edged([NORMAL], [True], [0.25], 1, often=True) or []
    assert int((often == 0.25).sum()) > 20


def test_what_lies_between_two_close_numbers_of_the_files_is_met() -> None:
    (moved,) = edges.edged([NORMAL], [True], [-1.2031, -1.203, 0.0, 0.0625, 0.55, 1.203, 1.2031, 1.2031], 1)
    wide = moved.double()
    exact = wide == (wide * 2**14).round() / 2**14
    assert all(bool((exact & (low < wide) & (wide < low + 0.0001)).any()) for low in (-1.2031, 1.203))
    assert edges._between([0.0, 0.5, 0.5, 0.75], 0.25) == [0.625]


def test_scales_beside_what_lies_around_zero_are_not_movable() -> None:
    assert skewed.movable([NORMAL, NORMAL.abs(), torch.arange(9)]) == [True, False, False]
    assert skewed.movable([NORMAL.abs()]) == [True]


def test_numbers_stand_in_files_with_both_signs(tmp_path: Path) -> None:
    code, broken = tmp_path / "code.py", tmp_path / "broken.py"
    code.write_text("LIMIT = 0.25\nflag = True\nname = 'x' if y > 3 else 1e40\n", encoding="utf-8")
    broken.write_text("x = (7", encoding="utf-8")
    found = literals.numbers_of([code, broken, tmp_path / "missing.py"])
    assert {0.0, 0.25, -0.25, 3.0, -3.0} <= set(found) and 7.0 not in found and 1e40 not in found
