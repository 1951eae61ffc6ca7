"""Writes zeros, tiny rows, equal rows and NaN into float inputs, for operators that are idle on other values (`reaching`)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import torch

from pypto_op.triton.run.inputs.edges import is_ordered, is_sorted
from pypto_op.triton.run.inputs.packing import changed_copy, memory_of

_LOST = (float("nan"), float("inf"), float("-inf"))
_EACH = 4
"""Every other slice of so many is smaller than the one before by a factor of four."""
_SQUARES = 52
_SHARE = 4
"""One element of so many is the greatest one, where it shall be a number times a power of two."""
_MISSES = 5
"""One number of so many is none then."""
_LEVELS = 4
"""So many different values has an input whose elements shall be alike."""


def zeroing(count: int) -> Callable[[torch.Tensor, torch.Tensor], None]:
    """Return what lets a slice along each axis be zero, in the middle of every tensor; of several each has a row for itself, too.

    A guard may ask for a zero in one of two tensors. Two zeros in one row would be equal elements.
    """
    turns = itertools.count(1)

    def zero(copy: torch.Tensor, tensor: torch.Tensor) -> None:
        turn = next(turns)
        for axis, size in enumerate(copy.shape if not is_sorted(tensor) else ()):
            if size > 1 and copy.stride(axis):
                copy.select(axis, size // 2).zero_()
                if count > 1 and turn < size // 2 and (axis < copy.dim() - 1 or copy.dim() == 1):
                    copy.select(axis, size // 2 + turn if turn < size - size // 2 else 0).zero_()

    return zero


def shrink(power: int, copy: torch.Tensor, tensor: torch.Tensor, *, zero: bool = False) -> None:
    """Let every other slice along each axis be so much smaller that a small number beside what it comes to shows.

    `zero`: of long axes another slice is zero, where the number is all that there is.
    """
    if is_ordered(tensor) or tensor.element_size() < 4 or memory_of(copy).numel() != copy.numel():
        return
    for axis, size in enumerate(copy.shape):
        for turn in range(1, size, 2) if size >= _EACH else ():
            copy.select(axis, turn).mul_(2.0 ** -(power + 2 * (turn // 2 % _EACH)))
        if zero and size >= 2 * _EACH:
            copy.select(axis, size // 4 * 2).zero_()


def shrink_squares(copy: torch.Tensor, tensor: torch.Tensor, *, zero: bool = False) -> None:
    """Let slices be so small that a root of what is never negative (sums of squares), or of others' squares, comes to 1e-8."""
    shrink(_SQUARES if bool((tensor >= 0).all()) else _SQUARES // 2, copy, tensor, zero=zero)


def level(copy: torch.Tensor, tensor: torch.Tensor) -> None:
    """Let elements have few values, the same in inputs of about the same range; what is sorted or symmetric stays."""
    low, high = (float(end) for end in torch.aminmax(tensor))
    snap(2.0 ** math.ceil(math.log2((high - low) / _LEVELS)), copy, tensor)


def snap(step: float, copy: torch.Tensor, tensor: torch.Tensor) -> None:
    """Let elements be multiples of a step, where they are in no order."""
    if not is_ordered(tensor):
        memory = memory_of(copy)
        memory.copy_((memory / step).round() * step)


def encode(number: float, copy: torch.Tensor, tensor: torch.Tensor) -> None:
    """Let some elements be this number times a power of two, or its negative, and the others multiples of its half between."""
    if is_ordered(tensor):
        return
    memory = memory_of(copy)
    step = 2.0 ** math.floor(math.log2(float(memory.abs().max()) / number))
    draws = torch.Generator().manual_seed(0)
    at = (torch.rand(len(memory), generator=draws) < 1 / _SHARE).to(memory.device)  # each row, column and group has some
    signs = torch.randint(0, 2, (len(memory),), generator=draws).to(memory) * 2 - 1
    halves = (2 * memory / step).round().clamp(-2 * number, 2 * number) / 2
    memory.copy_(torch.where(at, signs * number, halves) * step)


def missing() -> Callable[[torch.Tensor, torch.Tensor], None]:
    """Return what puts NaN in the place of some numbers, in each tensor in other places: what is greater is known then."""
    turns = itertools.count()

    def miss(copy: torch.Tensor, tensor: torch.Tensor) -> None:
        if not is_sorted(tensor):
            memory_of(copy)[next(turns) % _MISSES :: _MISSES] = float("nan")

    return miss


def same_rows(inputs: Any) -> Any | None:
    """Return inputs of which a tensor of floats has some rows from the one of its shape before it, some with the other sign.

    Rows move whole, so unit vectors stay such, and probabilities. None where no two tensors have one shape.
    """
    before: dict[tuple[Any, ...], torch.Tensor] = {}

    def change(copy: torch.Tensor, tensor: torch.Tensor) -> bool:
        if not tensor.is_floating_point() or tensor.dim() < 2 or tensor.shape[-2] < _EACH or is_ordered(tensor):
            return False
        other = before.setdefault((tensor.shape, tensor.dtype), tensor)
        if other is tensor:
            return False
        copy[..., ::_EACH, :] = other[..., ::_EACH, :]
        if bool((other < 0).any() & (other > 0).any()):
            copy[..., 1::_EACH, :] = -other[..., 1::_EACH, :]
        return True

    return changed_copy(inputs, change)


def hiding(shape: torch.Size) -> Callable[[torch.Tensor, torch.Tensor], None]:
    """Return what puts minus infinity into tensors of that shape: a logarithm of nothing, now in one and now in two of them."""
    turns = itertools.count()

    def hide(copy: torch.Tensor, tensor: torch.Tensor) -> None:
        if tensor.shape == shape and not is_sorted(tensor):
            memory_of(copy)[:: 2 + next(turns) % 2] = float("-inf")

    return hide


def lose(copy: torch.Tensor, tensor: torch.Tensor) -> None:
    """Put what is no number, or no finite one, into some places; what is sorted stays."""
    for first, value in enumerate(_LOST if not is_sorted(tensor) else ()):
        memory_of(copy)[first :: max(len(_LOST), copy.numel() // 7)] = value
