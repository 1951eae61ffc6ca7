"""Numbers that differ in their last bits alone, zeros below zero, and coordinates between two pixels: what hardly any draw holds.

A kernel that compares whole numbers, or doubles, as float32, or that packs a place into the low bits of a float, is right for
numbers that lie apart. One that asks `x < 0` for a sign is right but for -0.0. One that adds 0.5 and cuts off takes another pixel
than the even one where a coordinate lies halfway.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import Any

import torch

from pypto_op.triton.run.inputs import skewed, smaller
from pypto_op.triton.run.inputs.edges import is_ordered, is_sorted
from pypto_op.triton.run.inputs.packing import changed_copy, holds_integers, memory_of

LAST, MINUS = "last bits", "zero below zero"
SIDES = (LAST, MINUS)
COMPARES = frozenset(("gt", "ge", "lt", "le", "eq", "ne"))
SIGNS = {"signbit": 0, "copysign": 1}
"""They ask for the sign of a zero, too: of the argument of this number."""
SAMPLERS = frozenset(("grid_sampler_2d", "grid_sampler_3d"))
_NEAREST = 1
_LOW, _WIDE = 0xFF, 4
"""Low bits of a float32 in which a place may be packed; a dtype of fewer bytes has no narrower one to be kept in."""
_LEVELS, _TURNS, _STEP = 4, 61, 2**27
"""So many levels, farther apart than whole numbers by the last, and so many numbers beside each."""
_MISSES = 5
"""One number of so many is zero, and another one zero below zero."""


def merged(tensor: torch.Tensor) -> torch.Tensor | None:
    """Return a tensor whose last bits are lost as in float32, or as below a place; None where its dtype has none to lose."""
    if tensor.dtype is torch.float32:
        return tensor.view(torch.int32) & ~_LOW
    wide = tensor.dtype in (torch.float64, torch.int64, torch.int32)
    return tensor.to(torch.float32) if wide else None


def is_never_by_bits(one: torch.Tensor, other: torch.Tensor) -> bool | None:
    """Whether a comparison never met two numbers that differ in their last bits alone; None where there are no such."""
    left, right = (merged(tensor.contiguous()) for tensor in (one, other))
    if left is None or right is None or one.dtype is not other.dtype:
        return None
    return not bool(((left == right) & (one != other)).any())


def is_never_first_by_bits(name: str, args: Any, given: torch.Tensor) -> bool | None:
    """Whether no row has an element that differs from its greatest, or least, one (`argmax`, `argmin`) in its last bits alone."""
    axis = args[1] if len(args) > 1 else None
    rows = given.reshape(-1) if axis is None else given
    if not rows.dim() or not rows.numel():
        return None
    best = (torch.amax if name == "argmax" else torch.amin)(rows, 0 if axis is None else axis, keepdim=True)
    return is_never_by_bits(rows, best.expand_as(rows))


def is_never_minus(name: str, args: Any) -> bool | None:
    """Whether no zero below zero was asked for its sign, by an operator of `SIGNS`."""
    asked = args[SIGNS[name]]
    if not isinstance(asked, torch.Tensor) or not asked.is_floating_point():
        return None
    return not bool(((asked == 0) & torch.signbit(asked)).any())


def are_never_empty(begins: torch.Tensor) -> bool | None:
    """Whether bags that begin at these places all hold something; None for bags of one size, as rows of indices are."""
    steps = begins.diff()
    return bool((steps > 0).all()) if bool((steps != steps[:1]).any()) else None


def coordinates(args: Any) -> torch.Tensor | None:
    """Return in pixels where an operator of `SAMPLERS` looks, if it takes the nearest pixel; else None.

    Args:
        args: image (N, C, ..., H, W), grid (N, ..., 2 or 3) with x first, mode, padding, whether corners are aligned.
    """
    image, grid, mode, _, aligned = args[:5]
    if mode != _NEAREST:
        return None
    sizes = torch.tensor(image.shape[:1:-1], device=grid.device, dtype=torch.float64)
    found: torch.Tensor = (grid + 1) / 2 * (sizes - 1) if aligned else ((grid + 1) * sizes - 1) / 2
    return found


def ways(inputs: Any, idle: Collection[str]) -> Iterator[tuple[str, Callable[[], Any | None]]]:
    """Yield what changes inputs for sides that are idle, and what that is called."""
    for side, make in ((LAST, _by_bits), (MINUS, _minus)):
        if any(f"({side})" in name for name in idle):
            yield side, partial(make, inputs)


def _by_bits(inputs: Any) -> Any | None:
    """Return inputs that lie beside few values, the same in inputs of one range, and differ there by their last bits."""
    movable, turns = iter(skewed.movable(inputs)), itertools.count()

    def change(copy: torch.Tensor, tensor: torch.Tensor) -> bool:
        moves = next(movable) and not is_ordered(tensor)
        whole = holds_integers(tensor) and tensor.numel() > 1 and not is_sorted(tensor)
        if not (moves or whole) or tensor.element_size() < _WIDE:
            return False
        memory = memory_of(copy)
        beside = torch.arange(len(memory), device=memory.device) * (2 * next(turns) + 7) % _TURNS
        if moves:
            smaller.level(copy, tensor)
            least = memory[memory != 0].abs().min() if bool(memory.any()) else 1.0  # zero has no bits to lose
            memory.copy_(torch.where(memory == 0, least, memory))
            memory.mul_(1 + beside.to(memory) * torch.finfo(memory.dtype).eps)
        else:
            low, high = int(memory.min()), int(memory.max())
            memory.copy_((memory.long() - low) * _LEVELS // max(1, high - low) * _STEP + beside)
        return True

    return changed_copy(inputs, change)


def _minus(inputs: Any) -> Any | None:
    """Return inputs some of whose floats are zero, and zero below zero, in each tensor at other places."""
    movable, turns = iter(skewed.movable(inputs, scales=True)), itertools.count()

    def change(copy: torch.Tensor, tensor: torch.Tensor) -> bool:
        if not next(movable) or is_sorted(tensor):
            return False
        memory, first = memory_of(copy), next(turns)
        for turn, zero in enumerate((-0.0, 0.0)):
            memory[(2 * first + turn) % _MISSES :: _MISSES] = zero
        return True

    return changed_copy(inputs, change)
