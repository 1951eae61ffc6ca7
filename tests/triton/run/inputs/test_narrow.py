"""Inputs hold numbers that differ in their last bits alone, zeros below zero, and places between pixels (`narrow.py`)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from pypto_op.triton.run.inputs import idle, narrow, reaching, sides
from pypto_op.triton.run.watching.dispatch import lost_of

DRAWS = torch.Generator().manual_seed(0)
EVEN, OTHER = torch.rand(16, 50, generator=DRAWS), torch.rand(16, 50, generator=DRAWS)
WHOLE, MORE = (torch.randint(0, 1000, (16, 50), generator=DRAWS) for _ in range(2))
IMAGE, GRID = torch.randn(2, 3, 9, 9, generator=DRAWS), torch.rand(2, 6, 7, 2, generator=DRAWS) * 2 - 1
TARGETS = torch.stack([torch.randperm(8, generator=DRAWS) for _ in range(16)])
BAGS = [torch.randint(0, 20, (24,), generator=DRAWS), torch.randn(20, 16, generator=DRAWS), torch.tensor([0, 3, 5, 9, 12, 18])]
CALLS: dict[str, tuple[Callable[..., Any], list[torch.Tensor], str]] = {
    "whole numbers": (torch.gt, [WHOLE, MORE], narrow.LAST),
    "whole numbers of 32 bits": (torch.eq, [WHOLE.int(), MORE.int()], narrow.LAST),
    "doubles": (torch.lt, [EVEN.double(), OTHER.double()], narrow.LAST),
    "the place of the greatest whole number": (lambda x: x.argmax(-1), [WHOLE], narrow.LAST),
    "the place of the greatest float": (lambda x: x.argmax(-1), [EVEN], narrow.LAST),
    "the place of the least of all doubles": (lambda x: x.argmin(), [EVEN.double()], narrow.LAST),
    "a sign": (torch.signbit, [EVEN - 0.5], narrow.MINUS),
    "a sign that is copied": (torch.copysign, [EVEN, OTHER - 0.5], narrow.MINUS),
    "the nearest pixel": (lambda x, g: F.grid_sample(x, g, mode="nearest", align_corners=True), [IMAGE, GRID], sides.HALF),
    "the nearest pixel between corners": (
        lambda x, g: F.grid_sample(x, g, mode="nearest", align_corners=False),
        [IMAGE, GRID],
        sides.HALF,
    ),
    "bags": (lambda x, w, at: F.embedding_bag(x, w, at, mode="mean"), BAGS, sides.UNNAMED),
}


def _busy(call: Callable[..., Any], inputs: list[torch.Tensor]) -> set[str]:
    with idle.Idle(Path(__file__)) as watch:
        call(*(one.clone() for one in inputs))
    return {key.partition(" in ")[0] for key in watch.busy}


def _idle(call: Callable[..., Any], inputs: list[torch.Tensor]) -> dict[str, bool]:
    with idle.Idle(Path(__file__)) as watch:
        found = call(*(one.clone() for one in inputs))
    return watch.idle(found)


@pytest.mark.parametrize("name", CALLS)
def test_a_way_comes_to_what_no_draw_holds(name: str) -> None:
    call, own, side = CALLS[name]
    (key,) = mine = [key for key in _idle(call, own) if f"({side})" in key]
    ways = dict(reaching.reaching(own, dict.fromkeys(mine, not own[0].is_floating_point())))
    within = (moved for kind, moved in ways.items() if kind.startswith(reaching.WITHIN))
    assert any(key.partition(" in ")[0] in _busy(call, moved) for moved in within)


def test_labels_that_end_early_are_met() -> None:
    (key,) = _idle(F.multilabel_margin_loss, [EVEN[:, :8], TARGETS])
    assert "(without -1)" in key
    assert any(bool((moved[1] == -1).any()) for _, moved in reaching.meeting([EVEN[:, :8], TARGETS], {key: True}, []))


def test_computed_numbers_and_short_ones_differ_by_rounding() -> None:
    quiet = [lambda: EVEN * 2 > OTHER, lambda: EVEN.half() > OTHER.half(), lambda: (WHOLE + 1).argmax(-1)]
    assert not any(narrow.LAST in key for call in quiet for key in _idle(call, []))


@pytest.mark.parametrize(
    ("source", "dtype", "lost"),
    [
        (torch.tensor([1.5, 2.0]), torch.int32, True), (torch.tensor([1.0, 2.0]), torch.int32, False),
        (torch.tensor([1, 300]), torch.uint8, True), (torch.tensor([1, 200]), torch.uint8, False),
        (torch.tensor([0, 2]), torch.bool, True), (torch.tensor([0, 1]), torch.bool, False),
        (torch.tensor([1.5, 2.25]), torch.float16, False), (torch.tensor([1.5]), torch.float32, False),
    ],
)  # fmt: skip
def test_a_copy_that_loses_numbers_computes(source: torch.Tensor, dtype: torch.dtype, lost: bool) -> None:
    assert (lost_of(source, source.to(dtype)) is not None) is lost
