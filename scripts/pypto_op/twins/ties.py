"""Right answers that differ: where a value lies within rounding of a tie, two honest kernels may take different sides."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import torch

from pypto_op.comparison.walk import pieces

Leaves = Sequence[torch.Tensor]


FEW_STEPS = 16
"""Whole numbers so near one another are counts or steps, and honest code may find one between; others are places in a row."""


class RightAnswers:
    """The right answers of one output, made ready once to be compared with many candidates.

    Args:
        answers: the first is the usual one, and gives the result its dtype; those of another shape are left out.
    """

    def __init__(self, answers: Sequence[torch.Tensor]) -> None:
        self._usual, *others = answers
        others = [other.to(self._usual.dtype) for other in others if other.shape == self._usual.shape]
        self._others = [other for other in others if not torch.equal(other, self._usual)]

    def nearest(self, actual: torch.Tensor) -> torch.Tensor:
        """Return, element by element, what lies nearest to `actual` between the right answers.

        Where several values lie near ties, honest code may find some of them on one side and some on the other, so a sum or a
        count of them lies between the answers. Places in a row are taken from an answer only where it is exactly `actual`, and
        not twice where no answer has one twice.
        """
        usual = self._usual
        if not self._others or actual.shape != usual.shape or not usual.numel():
            return usual
        if usual.is_floating_point():
            return _between(actual, usual, self._others)
        return self._whole(actual) if actual.dtype == usual.dtype else usual

    def _whole(self, actual: torch.Tensor) -> torch.Tensor:
        together, low, high = self._numbers
        mine = actual.to(torch.int64)
        right = (high - low <= FEW_STEPS) & (low <= mine) & (mine <= high)
        for answer in together:
            right |= mine == answer
        for dim in range(mine.dim()):
            _keep_apart(right, mine, together, dim)
        return torch.where(right, actual, self._usual)

    @functools.cached_property
    def _numbers(self) -> tuple[list[torch.Tensor], torch.Tensor, torch.Tensor]:
        """The answers in int64, the least of them and the greatest, element by element."""
        together = [answer.to(torch.int64) for answer in (self._usual, *self._others)]
        return together, functools.reduce(torch.minimum, together), functools.reduce(torch.maximum, together)


def nearest(actual: torch.Tensor, answers: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return what lies nearest to `actual` between the right answers (`RightAnswers`)."""
    return RightAnswers(answers).nearest(actual)


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


def _keep_apart(right: torch.Tensor, mine: torch.Tensor, answers: Sequence[torch.Tensor], dim: int) -> None:
    """Let no number be right that is another one's than the usual answer's, and twice in a row where no answer has one twice.

    Sorting is dear: what settles a row ends it, and rows of the usual answer alone have nothing to lose.
    """
    rows = (right & (mine != answers[0])).any(dim)
    if mine.shape[dim] < 2 or not bool(rows.any()):
        return
    twice = _repeats(mine.movedim(dim, -1)[rows])
    for answer in answers:
        if not bool(twice.any()):
            return
        twice = twice & ~_repeats(answer.movedim(dim, -1)[rows])
    told = right.movedim(dim, -1)
    told[rows] = told[rows] & ~twice


def _repeats(rows: torch.Tensor) -> torch.Tensor:
    """Say of each row of [n, size], size 2 or more, whether it holds a number twice: [n, 1]."""
    low, high = torch.aminmax(rows)
    if int(high) - int(low) + 1 < rows.shape[-1]:  # more places than numbers
        return torch.ones_like(rows[:, :1], dtype=torch.bool)
    return (rows.sort(-1).values.diff(dim=-1) == 0).any(-1, keepdim=True)


def own_rounding(twin: torch.Tensor, answers: Sequence[torch.Tensor]) -> torch.Tensor | None:
    """Return how far a twin, an honest run's output, is from the nearest of the right answers, in float64; None without a tie.

    A twin that fell on the other side of a tie made no error.
    """
    if not twin.is_floating_point() or len(answers) < 2:
        return None
    return twin.to(torch.float64) - nearest(twin, answers)


def shifted(twin: torch.Tensor, rounding: torch.Tensor | None, expected: torch.Tensor) -> torch.Tensor:
    """Return a twin with its own rounding (`own_rounding`) beside `expected`, what the candidate is compared with, in float64."""
    if rounding is None:
        return twin
    wide = twin.to(torch.float64)
    found = torch.where(torch.isfinite(rounding), expected + rounding, wide)
    # A twin that is special where right answers part, and the expected one is not, says nothing about rounding.
    return torch.where(torch.isfinite(wide) | ~torch.isfinite(expected), found, expected).to(twin.dtype)
