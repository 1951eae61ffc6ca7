"""Terms below the tolerance: found in the reference, and missed in an answer (fresh_ninth.yaml has whole files)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from pypto_op.triton.run.judging import small, trivial

DRAWS = torch.Generator().manual_seed(0)
NORMAL = torch.randn(40, 50, generator=DRAWS)
OTHER = torch.randn(40, 50, generator=DRAWS)


@pytest.mark.parametrize(
    ("forward", "without"),
    [(lambda: NORMAL + 1e-5 * OTHER, NORMAL), (lambda: 1e-5 * OTHER[0] + NORMAL, NORMAL),
     (lambda: NORMAL.clone().sub_(OTHER, alpha=1e-5), NORMAL), (lambda: 1e-5 * OTHER - NORMAL, -NORMAL)],
    ids=["second", "first", "in_place", "subtracted"],
)  # fmt: skip
def test_a_small_term_is_found_and_left_out(forward: Callable[[], torch.Tensor], without: torch.Tensor) -> None:
    with small.Small(Path(__file__)) as watch:
        assert torch.equal(forward(), forward())
    assert watch.lines == {forward.__code__.co_firstlineno}
    with small.Small(Path(__file__), drops=True):
        assert torch.equal(forward(), without)


@pytest.mark.parametrize(
    "forward",
    [lambda: NORMAL + OTHER, lambda: NORMAL + 1e-5, lambda: NORMAL + torch.zeros(50), lambda: (NORMAL * 9).int() + 1],
    ids=["large", "number", "zeros", "whole"],
)
def test_other_sums_stay(forward: Callable[[], torch.Tensor]) -> None:
    with small.Small(Path(__file__), drops=True) as watch:
        found = forward()
    assert torch.equal(found, forward()) and not watch.lines


NOISE = 1e-4 * torch.randn(40, 50, generator=DRAWS)
TRUTH = NORMAL.double() + 1e-5 * OTHER.double()


@pytest.mark.parametrize(
    ("answer", "right"),
    [(TRUTH, True), (TRUTH + NOISE, True), (TRUTH * (1 + 1e-6), True), (NORMAL, False), (NORMAL + NOISE / 10, False),
     (NORMAL + 2e-6 * OTHER, False)],
    ids=["exact", "noise", "scaled", "left_out", "left_out_in_noise", "too_small"],
)  # fmt: skip
def test_what_is_left_out_is_told_from_noise(answer: torch.Tensor, right: bool) -> None:
    want = TRUTH.float()
    found = small.judged([7], [want], [answer.float()], trivial.sampled([NORMAL]), [TRUTH])
    assert found.ok is right
    assert right or "line 7 of the task" in found.message
