"""Right answers that differ: where a value lies within rounding of a tie, two honest kernels may take different sides."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from pypto_op.comparison.walk import pieces

Leaves = Sequence[torch.Tensor]


FEW_STEPS = 16
"""Whole numbers so near one another are counts or steps, and honest code may find one between; others are places in a row."""


def nearest(actual: torch.Tensor, answers: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return, element by element, what lies nearest to `actual` between the right answers.

    Where several values lie near ties, honest code may find some of them on one side and some on the other, so a sum or a
    count of them lies between the answers. Places in a row are taken from an answer only where it is exactly `actual`, and
    not twice where no answer has one twice.

    Args:
        answers: the first is the usual one, and gives the result its dtype; those of another shape are left out.
    """
    usual, *others = answers
    others = [other.to(usual.dtype) for other in others if other.shape == usual.shape]
    others = [other for other in others if not torch.equal(other, usual)]
    if not others or actual.shape != usual.shape or not usual.numel():
        return usual
    if usual.is_floating_point():
        return _between(actual, usual, others)
    return _whole(actual, usual, others) if actual.dtype == usual.dtype else usual


def _between(actual: torch.Tensor, usual: torch.Tensor, others: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return `actual` where it lies between the finite answers, else the nearer end; a special value where an answer has it."""
    chosen = usual.clone(memory_format=torch.contiguous_format)
    flat = chosen.view(-1)
    for offset, (mine, *told) in pieces([actual, usual, *others]):
        apart = torch.zeros_like(mine, dtype=torch.bool)
        for answer in told[1:]:
            apart |= answer != told[0]
        where = apart.nonzero().reshape(-1)
        mine, *told = (part[where] for part in (mine, *told))
        low = high = _finite(told[0])
        for answer in told[1:]:
            wide = _finite(answer)
            low, high = torch.fmin(low, wide), torch.fmax(high, wide)
        sound = torch.isfinite(mine) & torch.isfinite(low)
        part = told[0].clone()
        part[sound] = mine.to(torch.float64).clamp(low, high)[sound].to(usual.dtype)
        for answer in told[1:]:  # where one answer is special and so is the candidate's, it is right
            same = ~torch.isfinite(mine) & ((answer == mine) | (answer.isnan() & mine.isnan()))
            part[same] = answer[same]
        flat[offset + where] = part
    return chosen


def _finite(answer: torch.Tensor) -> torch.Tensor:
    """Return an answer in float64, NaN where it is special: no number lies between one and a finite answer."""
    wide = answer.to(torch.float64)
    return torch.where(torch.isfinite(wide), wide, torch.nan)


def _whole(actual: torch.Tensor, usual: torch.Tensor, others: Sequence[torch.Tensor]) -> torch.Tensor:
    together = [answer.to(torch.int64) for answer in (usual, *others)]
    mine = actual.to(torch.int64)
    low, high = together[0].clone(), together[0].clone()
    right = torch.zeros_like(mine, dtype=torch.bool)
    for answer in together:
        low, high = torch.minimum(low, answer), torch.maximum(high, answer)
        right |= mine == answer
    right |= (high - low <= FEW_STEPS) & (low <= mine) & (mine <= high)
    if bool((right & (mine != together[0])).any()):
        for dim in range(mine.dim()):
            right &= _may_repeat(together, dim) | ~_repeats(mine, dim)
    return torch.where(right, actual, usual)


def _may_repeat(answers: Sequence[torch.Tensor], dim: int) -> torch.Tensor:
    """Say of each row along `dim` whether an answer holds a number twice there. Sorting is dear: what settles it ends it."""
    told = _repeats(answers[0], dim)
    for answer in answers[1:]:
        if bool(told.all()):
            break
        told = told | _repeats(answer, dim)
    return told


def _repeats(values: torch.Tensor, dim: int) -> torch.Tensor:
    """Say of each row along `dim` whether it holds a number twice; its size there is 1."""
    if values.shape[dim] < 2:
        return torch.zeros_like(values, dtype=torch.bool)
    low, high = torch.aminmax(values)
    if int(high) - int(low) + 1 < values.shape[dim]:  # more places than numbers
        return torch.ones_like(values.select(dim, 0).unsqueeze(dim), dtype=torch.bool)
    return (values.sort(dim).values.diff(dim=dim) == 0).any(dim, keepdim=True)


def shifted(twin: torch.Tensor, answers: Sequence[torch.Tensor], expected: torch.Tensor) -> torch.Tensor:
    """Return a twin with its own rounding beside `expected`: a twin that fell on the other side of a tie made no error.

    Args:
        twin: an honest run's output.
        answers: the right answers, in float64.
        expected: the one that the candidate is compared with, in float64.
    """
    if not twin.is_floating_point() or len(answers) < 2:
        return twin
    wide = twin.to(torch.float64)
    error = wide - nearest(twin, answers)
    found = torch.where(torch.isfinite(error), expected + error, wide)
    # A twin that is special where right answers part, and the expected one is not, says nothing about rounding.
    return torch.where(torch.isfinite(wide) | ~torch.isfinite(expected), found, expected).to(twin.dtype)
