"""Inputs whose first and last slices hold the extremes, and which meet the numbers of the files exactly.

Values that were drawn from a continuous range hardly ever show a loop that ends one column early or late: the least of 700
elements lies in the column that was left out once in 700 rows. So the second pass puts the extremes there: in every other row the
greatest comes first and the least last, in the others it is the other way round. Nor is a drawn value ever equal to the bound
that it is compared with (`>` for `>=`, the sign of 0). So some elements become the numbers that stand in the files, and some lie
between two of them that are close. All stays within the range of the tensor. Nor do drawn values often show a running maximum or
minimum that loses a block on its way: the largest element so far must lie in that block. So in between every fourth element is a
new largest one, in the other rows a new least one, and the elements after it are not.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

import torch

from pypto_op.triton.run.inputs.packing import changed_copy, map_tensors, memory_of, same_layout

_AXIS = 8
"""Axes of fewer elements (channels of a colour, corners of a box) have no ends."""
_NEAR = 0.025
"""The part of a range, at each of its ends, in which the extremes of first slices lie; next to it is that of last ones."""
_LOOKED_AT = 1 << 16
_TWICE = 0.05
"""Of so many elements (but zeros) more than this part are equal to another one, where values repeat."""
_MOST = 32
_MOST_SORTED = 1 << 24
"""Elements of a tensor whose rows are sorted, which takes three times its memory."""
_CLOSE = 0.02
"""Two numbers of the files that are no farther apart, as a part of a range, have hardly any drawn element between them."""
_FINEST = 20
_SHARE = 16
"""One element of so many may become a number of the files."""
TOLD = (
    "in this pass the first and last slices held the greatest and the least elements, and some elements were exactly the numbers "
    "that stand in the files: a loop may leave out an end or read past it, `<` may stand for `<=`"
)


def edged(
    inputs: Any, movable: Sequence[bool], numbers: Sequence[float], seed: int, *, scales: Sequence[bool] = (), often: bool = False
) -> Any | None:
    """Return inputs of the same layout with extremes at their ends and these numbers in some places; None: none can have them.

    Args:
        inputs: stay as they are.
        movable: which of their tensors may be changed (`skewed.movable`).
        numbers: those that stand in the files.
        seed: draws the places.
        scales: which may hold those numbers, and are otherwise left as they are where they are not `movable`.
        often: each number has many places, as many as one of so few outputs needs to show (the mean of a loss).
    """
    moved = iter(zip_longest(movable, scales, fillvalue=False))
    draws = random.Random(seed)

    def change(copy: torch.Tensor, tensor: torch.Tensor) -> bool:
        all_of_it, numbers_alone = next(moved)
        if not (all_of_it or numbers_alone) or is_ordered(tensor):
            return False
        low, high = (float(end) for end in torch.aminmax(tensor))
        if all_of_it:
            _put_extremes(copy, tensor, low, high)
            _put_records(copy, tensor, seed)
        within = [number for number in numbers if low <= number <= high]
        _put_numbers(copy, [*within, *_between(within, _CLOSE * (high - low))], draws, often=often)
        return all_of_it or bool(within)

    return changed_copy(inputs, change)


def is_sorted(tensor: torch.Tensor, least: int = _AXIS) -> bool:
    """Whether a tensor is sorted along an axis of at least so many elements (the edges of bins, positions)."""
    axes = (axis for axis, size in enumerate(tensor.shape) if size >= least)
    return any(_rises_or_falls(tensor.narrow(axis, 0, least), axis) and _rises_or_falls(tensor, axis) for axis in axes)


def is_symmetric(tensor: torch.Tensor) -> bool:
    """Whether a tensor is a symmetric matrix, or several."""
    return tensor.dim() >= 2 and tensor.shape[-1] == tensor.shape[-2] and torch.equal(tensor, tensor.mT)


def is_ordered(tensor: torch.Tensor) -> bool:
    """Whether elements share memory or values, are sorted along an axis, or make a symmetric matrix."""
    if 0 in tensor.stride() or memory_of(tensor).numel() < tensor.numel():
        return True
    return is_symmetric(tensor) or is_sorted(tensor) or _repeats(tensor)


def _repeats(tensor: torch.Tensor) -> bool:
    """Whether a tensor holds many values twice (the cosines of both halves of a head): a kernel may read either of them."""
    for axis, size in enumerate(tensor.shape):
        half = size // 2
        if half and size % 2 == 0:
            pairs = tensor.unfold(axis, 2, 2)
            halves = tensor.narrow(axis, 0, half), tensor.narrow(axis, half, half)
            if torch.equal(*halves) or torch.equal(pairs.select(-1, 0), pairs.select(-1, 1)):
                return True
    if tensor.element_size() < 4:  # equal by chance
        return False
    some = tensor.reshape(-1)[:: max(1, tensor.numel() // _LOOKED_AT)]
    values = some[some != 0].sort().values
    return int((values.diff() == 0).sum()) > _TWICE * values.numel()


def _rises_or_falls(tensor: torch.Tensor, axis: int) -> bool:
    steps = tensor.shape[axis] - 1
    one, other = tensor.narrow(axis, 0, steps), tensor.narrow(axis, 1, steps)  # a difference of bools has no sign
    return bool((one <= other).all() or (one >= other).all())


def _long(tensor: torch.Tensor) -> list[int]:
    return [axis for axis, size in enumerate(tensor.shape) if size >= _AXIS]


def _put_extremes(copy: torch.Tensor, tensor: torch.Tensor, low: float, high: float) -> None:
    """Let the first and last elements along each long axis be beyond all others, but for corners and what is zero."""
    part, axes = _NEAR * (high - low), _long(tensor)
    if axes:
        inner = _wide(tensor).sub_(low).mul_(1 - 4 * _NEAR).add_(low + 2 * part)
        copy.copy_(torch.where(tensor != 0, inner, 0.0))
        del inner  # it may be large
    for axis in axes:
        turns, within = _turns(tensor.shape[:axis] + tensor.shape[axis + 1 :], tensor.device)
        for index, turn in ((0, 0), (-1, 1)):
            was = tensor.select(axis, index)
            place = _wide(was).sub_(low).mul_(_NEAR / 2)  # within a part, too, a greater element stays greater
            # what stands first is more extreme than the last element before it
            extreme = place + torch.where((turns + turn) % 2 == 0, high - (turn + 0.5) * part, low + turn * part)
            copy.select(axis, index).copy_(torch.where(within & (was != 0), extreme.to(was.dtype), copy.select(axis, index)))


def _put_records(copy: torch.Tensor, tensor: torch.Tensor, seed: int) -> None:
    """Reorder what lies between the ends of each row: every fourth element is the largest so far, in the other rows the least.

    Rows that begin with the greatest element get the least ones. A tensor with zeros, which must stay, is left as it is.
    """
    size = tensor.shape[-1] if tensor.dim() else 0
    if size < 4 * _AXIS or tensor.numel() > _MOST_SORTED or not bool((tensor != 0).all()):
        return
    inner = copy[..., 1:-1]
    ranked = inner.sort(-1).values
    places = torch.arange(1, size - 1, device=copy.device) % 4 == 3
    count = int(places.sum())
    order = torch.randperm(size - 2 - count, generator=torch.Generator().manual_seed(seed)).to(copy.device)
    rising, falling = torch.empty_like(ranked), torch.empty_like(ranked)
    rising[..., places], rising[..., ~places] = ranked[..., -count:], ranked[..., :-count][..., order]
    falling[..., places], falling[..., ~places] = ranked[..., :count].flip(-1), ranked[..., count:][..., order]
    turns, _ = _turns(tensor.shape[:-1], copy.device)
    inner.copy_(torch.where((turns % 2 == 0).unsqueeze(-1), falling, rising))


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    """Return a copy in float32, or float64 for that."""
    return tensor.to(torch.float64 if tensor.dtype is torch.float64 else torch.float32, copy=True)


def _turns(shape: Sequence[int], device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the sums of the indices of a slice's elements, and which of them lie at no end of a long axis."""
    sums = torch.zeros(tuple(shape), dtype=torch.int64, device=device)
    within = torch.ones_like(sums, dtype=torch.bool)
    for axis, size in enumerate(shape):
        indices = torch.arange(size, device=device).reshape([size if at == axis else 1 for at in range(len(shape))])
        sums += indices
        if size >= _AXIS:
            within &= (indices > 0) & (indices < size - 1)
    return sums, within


def scattered(inputs: Any, movable: Sequence[bool], seed: int, *, last: bool) -> Any:
    """Return inputs of the same layout whose rows have their greatest and least elements all over the rows, by turns.

    A kernel that loses one part of a row on the way to its maximum is right wherever the greatest element lies in the others.

    Args:
        inputs: stay as they are.
        movable: which of their tensors may be changed (`skewed.movable`).
        seed: draws which row gets which place.
        last: rows lie along the last axis; else along the longest of the others, where there are such.
    """
    moved = iter(movable)
    draws = torch.Generator().manual_seed(seed)

    def one(tensor: torch.Tensor) -> torch.Tensor:
        copy = same_layout(tensor)
        moves = next(moved) and tensor.dim() and tensor.numel() <= _MOST_SORTED and bool((tensor != 0).all())
        if not moves or is_ordered(tensor):
            return copy
        others = range(tensor.dim() - 1)
        axis = tensor.dim() - 1 if last or not others else max(others, key=lambda at: tensor.shape[at])
        if tensor.shape[axis] >= _AXIS:
            rows = copy.movedim(axis, -1).reshape(-1, tensor.shape[axis]).clone()
            _scatter(rows, draws)
            copy.copy_(rows.reshape(copy.movedim(axis, -1).shape).movedim(-1, axis))
        return copy

    return map_tensors(inputs, one)


def _scatter(rows: torch.Tensor, draws: torch.Generator) -> None:
    """Exchange each row's greatest element for that at its place, and the least one for that half a row further."""
    count, size = rows.shape
    turns = torch.randperm(count, generator=draws) + float(torch.rand((), generator=draws))
    places = (turns * size / count).long().clamp_(max=size - 1).to(rows.device)
    for at, extreme in ((places, torch.argmax), ((places + size // 2) % size, torch.argmin)):
        here, there = extreme(rows, -1, keepdim=True), at.unsqueeze(-1)
        found, gone = rows.gather(-1, here), rows.gather(-1, there)
        rows.scatter_(-1, here, gone).scatter_(-1, there, found)


def _between(numbers: Sequence[float], close: float) -> list[float]:
    """Return a number between any two neighbours that are close, with few binary places: `a < x < b` is one case more."""
    found: list[float] = []
    for low, high in zip(numbers, numbers[1:], strict=False):
        finer = (math.floor(low * 2.0**places + 1) / 2.0**places for places in range(_FINEST))
        found += [next((number for number in finer if low < number < high), low)] if 0 < high - low <= close else []
    return found


def _put_numbers(copy: torch.Tensor, numbers: list[float], draws: random.Random, *, often: bool) -> None:
    """Put numbers that the dtype holds exactly in the place of drawn elements; zeros (of a triangle, say) stay."""
    exact = [number for number in numbers if float(torch.tensor(number, dtype=copy.dtype)) == number]
    times = _MOST if often else 1
    exact = exact * times
    count = min(len(exact), _MOST * times, copy.numel() // _SHARE)
    for number, place in zip(draws.sample(exact, count), draws.sample(range(copy.numel()), count), strict=True):
        at: list[int] = []
        for size in reversed(copy.shape):
            place, index = divmod(place, size)
            at.insert(0, index)
        if float(copy[tuple(at)]):
            copy[tuple(at)] = number
