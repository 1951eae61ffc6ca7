"""Right answers that differ: where a value lies within rounding of a tie, honest kernels part, and each side is right."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from pypto_op.comparison.walk import pieces

Leaves = Sequence[torch.Tensor]


def nearest(actual: torch.Tensor, answers: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return, element by element, the right answer that is closest to `actual`.

    Args:
        actual: any shape and dtype.
        answers: the first is the usual one, and gives the result its dtype; those of another shape are left out. Whole
            numbers are taken from another answer only where it is exactly `actual`.
    """
    usual, *others = answers
    others = [other.to(usual.dtype) for other in others if other.shape == usual.shape]
    if not others or actual.shape != usual.shape:
        return usual
    chosen = usual.clone()
    for other in others:
        _take(chosen, actual, other)
    return chosen


def _take(chosen: torch.Tensor, actual: torch.Tensor, other: torch.Tensor) -> None:
    """Put `other` into `chosen` wherever it is closer to `actual`."""
    if not chosen.is_floating_point():
        hit = actual == other if actual.dtype == other.dtype else torch.zeros_like(chosen, dtype=torch.bool)
        chosen[hit] = other[hit]
        return
    flat = chosen.view(-1)
    for offset, (now, mine, far) in pieces([chosen, actual, other]):
        wide = mine.to(torch.float64)
        closer = (far.to(torch.float64) - wide).abs() < (now.to(torch.float64) - wide).abs()
        part = flat[offset : offset + now.numel()]
        part[closer] = far[closer]


def shifted(twin: torch.Tensor, answers: Sequence[torch.Tensor], expected: torch.Tensor) -> torch.Tensor:
    """Return a twin with its own rounding beside `expected`: a twin that fell on the other side of a tie made no error.

    Args:
        twin: an honest run's output.
        answers: the right answers, in float64.
        expected: the one that the candidate is compared with, in float64.
    """
    if not twin.is_floating_point() or len(answers) < 2:
        return twin
    error = twin.to(torch.float64) - nearest(twin, answers)
    return torch.where(torch.isfinite(error), expected + error, twin.to(torch.float64)).to(twin.dtype)
