"""Makes rows of one sign, and equal whole numbers: inputs that random draws hardly ever hold.

A kernel whose greatest element begins at a padding of zero is right for every row that holds a positive one. A row of sums of
products has one, wherever all inputs are moved to the same side. One that names the last of equal elements is right where none
are.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from pypto_op.triton.run.inputs import sides
from pypto_op.triton.run.inputs.edges import is_ordered
from pypto_op.triton.run.inputs.packing import changed_copy, holds_integers, memory_of

ROWS = (sides.ONE_SIGN, sides.SUNK)
"""Sides to which rows of one sign come."""
OF_INPUTS: tuple[float, ...] = (8.0, 16.0)
OF_WEIGHTS: tuple[float, ...] = (128.0,)
"""How far inputs reach of whose products, with each other or with weights, a softmax has nothing left beside zero."""
ALL = -1
"""The turn of every tensor."""
_LEVELS = 4


def of_sign(inputs: Any, sign: int) -> Any | None:
    """Return inputs whose whole numbers of both signs have this one in their first half; None: there are none."""

    def change(copy: torch.Tensor, tensor: torch.Tensor) -> bool:
        if not holds_integers(tensor) or not bool((tensor < 0).any() and (tensor > 0).any()):
            return False
        memory = memory_of(copy)
        most = int((memory.long() * sign).max())
        half = memory[: max(1, len(memory) // 2)]
        half.copy_(torch.where(half * sign <= 0, sign * (1 + half % most), half))
        return True

    return changed_copy(inputs, change)


def opposing(target: int, most: float) -> Callable[[torch.Tensor, torch.Tensor], None]:
    """Return what lets the tensor of that turn be below zero, and the others above it; at least as far as `most`."""
    turns = itertools.count()

    def write(copy: torch.Tensor, tensor: torch.Tensor) -> None:
        sign = -1.0 if target in (next(turns), ALL) else 1.0
        low, high = (float(end) for end in torch.aminmax(tensor))
        if low < 0 < high and not is_ordered(tensor):
            memory = memory_of(copy)
            moved = sign * max(most, -low, high) * (1.0 + ((memory - low) / (high - low)).clamp(0.0, 1.0)) / 2
            memory.copy_(torch.where(memory == 0, memory, moved))

    return write


def alike(inputs: Any) -> Any | None:
    """Return inputs whose whole numbers have few values of their range, where they are in no order; None: there are none."""

    def change(copy: torch.Tensor, tensor: torch.Tensor) -> bool:
        if not holds_integers(tensor) or not tensor.numel() or is_ordered(tensor):
            return False
        memory = memory_of(copy)
        low, high = int(memory.min()), int(memory.max())
        memory.sub_((memory - low) % max(1, (high - low) // _LEVELS))
        return high - low > _LEVELS

    return changed_copy(inputs, change)


WAYS: dict[str, Callable[[Any], Any | None]] = {
    "above zero": partial(of_sign, sign=1),
    "below zero": partial(of_sign, sign=-1),
    "alike": alike,
}
"""By name: what changes inputs so."""
