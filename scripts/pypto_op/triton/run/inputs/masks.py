"""Turns whole rows of a drawn mask off or on, because a random draw hardly ever holds such a row.

A kernel that divides by the sum of such a row, or that takes no maximum of it, is right for the others. So in a pass of its own
some rows are like that, where the reference takes it (a softmax of -inf alone it does not). What the rows of all draws have in
common stays: a first place that is always on, lengths.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from pypto_op.triton.run.inputs.packing import changed_copy, once, tensors_of

MOVE = "masks"
"""The name of this move, beside those of `skewed`."""
_LEAST = 16
"""Fewer whole numbers may be anything (two ends, the edges of a graph)."""
_FEW = 64
_TURNS = 10
_PLACES = (None, None, -1, -1, 0, 0)
"""Of ten rows so many are off, then on, by turns, but for that place."""
TOLD = "in this pass some rows of each mask among the inputs were all off or on, or that but for an end"


def found(inputs: Any) -> bool:
    """Whether some input is a mask with both values."""
    return any(map(_is_mask, tensors_of(inputs)))


@dataclass(frozen=True)
class Habit:
    """What all drawn rows of a mask have in common; a pass leaves it so.

    Attributes:
        on: the places that were on in each row (a first token, say).
        off: those that were off in each.
        rises: each row was off, then on; a kernel may count and take what is on as the last ones.
        falls: each row was on, then off.
        diagonal: each element of the diagonal was on.
        stays: the mask was symmetric, or other inputs follow from it (lengths), so no row becomes another one.
        count: so many elements were on in each row (a choice, labels), which stays, too; -1 where rows differ.
    """

    on: torch.Tensor
    off: torch.Tensor
    rises: bool
    falls: bool
    diagonal: bool
    stays: bool
    count: int


def habits(inputs: Any, before: list[Habit | None] | None) -> list[Habit | None]:
    """Return by tensor what the rows of a mask have in common, with those of earlier draws of the same shape; None for others."""
    tensors = tensors_of(inputs)
    known = before if before is not None and len(before) == len(tensors) else [None] * len(tensors)
    return [_habit(tensor, one, tensors) for tensor, one in zip(tensors, known, strict=True)]


def moved(inputs: Any, found: Sequence[Habit | None], same: Sequence[bool] = ()) -> Any | None:
    """Return inputs of the same layout, masks with other rows; None where there are none.

    Args:
        inputs: stay as they are.
        found: by tensor what its rows have in common (`habits`).
        same: which tensors are the same for every seed; a causal mask, say, has no such rows.
    """
    stays, common, turns = iter(same), iter(found), itertools.count()

    def change(copy: torch.Tensor, tensor: torch.Tensor) -> bool:
        stay, habit = next(stays, False), next(common, None)
        if stay or habit is None or habit.stays or habit.count >= 0 or not _is_mask(tensor):
            return False
        low, high = torch.aminmax(tensor)
        _write(_rows(copy), low, high, habit, mirrored=next(turns) % 2 == 1)
        return not torch.equal(copy, tensor)

    return changed_copy(inputs, change)


def _rows(tensor: torch.Tensor) -> torch.Tensor:
    """Return a view whose last axis is the last one that has several elements, each of which lies in its own memory."""
    seen = once(tensor)
    return seen.movedim(max((at for at, size in enumerate(seen.shape) if size > 1), default=0), -1)


def _habit(tensor: torch.Tensor, before: Habit | None, tensors: list[torch.Tensor]) -> Habit | None:
    if not _is_mask(tensor):
        return before
    rows = _rows(tensor)
    on = rows == rows.max()
    flat = on.reshape(-1, on.shape[-1])
    steps, counts = flat.to(torch.int8).diff(dim=-1), flat.sum(-1)
    square = on.dim() > 1 and on.shape[-1] == on.shape[-2]
    diagonal = square and bool(on.diagonal(dim1=-2, dim2=-1).all())
    bound = (square and torch.equal(on, on.mT)) or any(_follows(other, on, counts) for other in tensors if other is not tensor)
    count = int(counts[0]) if bool((counts == counts[0]).all()) else -1
    now = Habit(flat.all(0), ~flat.any(0), bool((steps >= 0).all()), bool((steps <= 0).all()), diagonal, bound, count)
    if before is None or before.on.shape != now.on.shape:
        return now
    ways = before.rises and now.rises, before.falls and now.falls, before.diagonal and now.diagonal, before.stays and now.stays
    return Habit(before.on & now.on, before.off & now.off, *ways, count if count == before.count else -1)


def _follows(other: torch.Tensor, on: torch.Tensor, counts: torch.Tensor) -> bool:
    """Whether another input is a mask's lengths, the mask once more, or its opposite."""
    if other.numel() == counts.numel() and not other.is_complex() and other.dtype is not torch.bool:
        return torch.equal(other.reshape(-1).double(), counts.double())
    if other.shape != on.shape or not _is_mask(other):
        return False
    return torch.equal(other == other.max(), on) or torch.equal(other == other.min(), on)


def _write(rows: torch.Tensor, low: torch.Tensor, high: torch.Tensor, habit: Habit, *, mirrored: bool) -> None:
    """Write the rows; of two masks the ends are exchanged, so rows with one element on share none."""
    turns = torch.zeros(rows.shape[:-1], dtype=torch.int64, device=rows.device)
    for axis, size in enumerate(turns.shape):
        turns += torch.arange(size, device=rows.device).reshape([-1 if at == axis else 1 for at in range(turns.dim())])
    for turn, place in enumerate(_PLACES):
        on = bool(turn % 2)
        place = place if place is None or not mirrored else -1 - place
        if (habit.rises or habit.falls) and place != (None if on else -1 if habit.rises else 0):
            continue
        picked = turns % _TURNS == turn
        rows[picked] = high if on else low
        if place is not None:
            rows.select(-1, place)[picked] = low if on else high
    rows[..., habit.on], rows[..., habit.off] = high, low
    if habit.diagonal:
        rows.diagonal(dim1=-2, dim2=-1).fill_(high)


def _is_mask(tensor: torch.Tensor) -> bool:
    """Whether a tensor holds both values of a mask, and no others: False and True, 0 and 1, or 0 and what is added to hide."""
    if tensor.numel() < (2 if tensor.dtype is torch.bool else _LEAST) or tensor.is_complex():
        return False
    few = tensor.reshape(-1)[:_FEW] if tensor.is_contiguous() else once(tensor).reshape(-1)[:_FEW]
    if tensor.dtype is not torch.bool and len(set(few.tolist())) > 2:  # the rest need not be looked at
        return False
    low, high = torch.aminmax(tensor)
    if bool(low == high) or not bool(((tensor == low) | (tensor == high)).all()):
        return False
    hides = tensor.is_floating_point() and float(high) == 0.0
    return hides or (float(low), float(high)) == (0.0, 1.0)
