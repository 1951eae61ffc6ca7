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

from pypto_op.triton.run.inputs import domains, sides
from pypto_op.triton.run.inputs.edges import is_ordered, is_sorted
from pypto_op.triton.run.inputs.packing import changed_copy, holds_integers, memory_of

ROWS = (sides.ONE_SIGN, sides.SUNK, domains.DEEP)
"""Sides to which rows of one sign come."""
OF_INPUTS: tuple[float, ...] = (8.0, 16.0)
OF_WEIGHTS: tuple[float, ...] = (128.0,)
"""How far inputs reach of whose products, with each other or with weights, a softmax has nothing left beside zero."""
ALL = -1
"""The turn of every tensor."""
_LEVELS = _EACH = 4
_BYTE = 255
_MISSES = 5
"""One number of so many has the other sign, or of a few more."""


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


def mirroring() -> Callable[[torch.Tensor, torch.Tensor], None]:
    """Return what lets a tensor of one sign have the other one in half of its rows, and in some places; each has other ones."""
    turns = itertools.count()

    def mirror(copy: torch.Tensor, tensor: torch.Tensor) -> None:
        if _has_one_sign(tensor):
            memory, turn = memory_of(copy), next(turns)
            halves = memory[: len(memory) // 2], memory[len(memory) // 2 :]
            halves[turn % 2].neg_()
            halves[1 - turn % 2][:: _MISSES + turn].neg_()

    return mirror


def negate(copy: torch.Tensor, tensor: torch.Tensor) -> None:
    """Let a tensor of one sign have the other one."""
    if _has_one_sign(tensor):
        memory_of(copy).neg_()


def _has_one_sign(tensor: torch.Tensor) -> bool:
    """Whether a tensor holds no two signs, and in no order that another one would break."""
    return bool((tensor >= 0).all() | (tensor <= 0).all()) and not is_ordered(tensor)


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


def at_ends(inputs: Any) -> Any | None:
    """Return inputs whose whole numbers are their least or their greatest one, where they repeat in no order: pure colours."""

    def change(copy: torch.Tensor, tensor: torch.Tensor) -> bool:
        if is_ordered(tensor) or not _repeats(tensor.reshape(-1)):
            return False
        memory = memory_of(copy)
        greatest = torch.rand(len(memory), generator=torch.Generator().manual_seed(0)) < 0.5
        low, high = int(memory.min()), int(memory.max())
        if tensor.dtype is torch.uint8 and 4 * (high - low) >= 3 * _BYTE:  # few pixels: one of all ends was hardly drawn
            low, high = 0, _BYTE
        memory.copy_(torch.where(greatest.to(memory.device), high, low))
        return True

    return changed_copy(inputs, change)


def at_limits(inputs: Any) -> Any | None:
    """Return inputs whose short whole numbers are the least or greatest of their dtype, in all tensors at once and by turns."""
    turns = itertools.count()

    def change(copy: torch.Tensor, tensor: torch.Tensor) -> bool:
        if tensor.dtype not in (torch.int8, torch.int16) or not tensor.numel() or is_ordered(tensor):
            return False
        memory, limits = memory_of(copy), torch.iinfo(tensor.dtype)
        by_turns = limits.min if next(turns) % 2 else limits.max
        for first, number in enumerate((limits.min, limits.max, by_turns)):
            memory[first::_EACH] = number
        return True

    return changed_copy(inputs, change)


def without_least(inputs: Any, target: int = ALL) -> Any | None:
    """Return inputs whose whole numbers lack their least one, where they repeat in no order: a segment is empty then.

    Where they rise from zero, as the places at which segments begin do, two of them are equal. `target`: in the tensor of
    that place alone, so that another still names what this one never does (an edge that leaves a node which none reaches).
    """
    places = itertools.count()

    def change(copy: torch.Tensor, tensor: torch.Tensor) -> bool:
        if target not in (next(places), ALL) or not holds_integers(tensor) or not tensor.numel():
            return False
        memory = memory_of(copy)
        if _are_bounds(tensor):
            memory[len(memory) // 2] = memory[len(memory) // 2 - 1]
            return True
        least, steps = memory == memory.min(), memory.long().diff()
        if int(least.sum()) < 2 or not bool((steps < 0).any() and (steps > 0).any()):
            return False
        memory[least] = memory.max()
        return True

    return changed_copy(inputs, change)


def _are_bounds(tensor: torch.Tensor) -> bool:
    """Whether whole numbers rise from zero, not one by one as places do."""
    if tensor.dim() != 1 or len(tensor) < _EACH or int(tensor[0]):
        return False
    steps = tensor.long().diff()
    return bool((steps > 0).all() and (steps != steps[0]).any())


def turned(inputs: Any, target: int, number: int) -> Any | None:
    """Return inputs of which the tensor of that place has its last whole numbers larger by a number: a ring goes round once.

    Bytes, which do not reach it alone, are the greatest there: their sum may.
    """
    places = itertools.count()

    def change(copy: torch.Tensor, tensor: torch.Tensor) -> bool:
        if next(places) != target or not holds_integers(tensor) or not tensor.numel():
            return False
        half, most = memory_of(copy)[tensor.numel() // 2 :], torch.iinfo(tensor.dtype).max
        if int(tensor.max()) + number <= most:
            half += number
        elif tensor.dtype is torch.uint8 and int(tensor.max()) > 1:
            half.fill_(most)
        else:
            return False
        return True

    return changed_copy(inputs, change)


def of_one_value(inputs: Any) -> Any | None:
    """Return inputs whose whole numbers are all their greatest one (no pair differs, one expert has all tokens), or None.

    Where none stands twice in a row, each may stand there once.
    """

    def change(copy: torch.Tensor, tensor: torch.Tensor) -> bool:
        if not _repeats(tensor):
            return False
        copy.fill_(tensor.max())
        return True

    return changed_copy(inputs, change)


def rows_of_least(inputs: Any) -> Any | None:
    """Return inputs of which every other row has its least whole number throughout, where they repeat in no order: no label."""

    def change(copy: torch.Tensor, tensor: torch.Tensor) -> bool:
        if tensor.dim() < 2 or tensor.shape[-2] < 2 or not _repeats(tensor):
            return False
        copy[..., ::2, :] = tensor.min()
        return True

    return changed_copy(inputs, change)


def lone(inputs: Any, times: int) -> Any | None:
    """Return inputs whose least whole number stands just so many times, where they repeat in no order: a group of one."""

    def change(copy: torch.Tensor, tensor: torch.Tensor) -> bool:
        if not _repeats(tensor.reshape(-1)):
            return False
        memory = memory_of(copy)
        places = (memory == memory.min()).nonzero().reshape(-1)
        memory[places[times:]] = memory.max()
        return len(places) > times

    return changed_copy(inputs, change)


def twice(inputs: Any) -> Any | None:
    """Return inputs in whose rows some whole numbers stand twice, where none does: keys that are alike; None: there are none."""

    def change(copy: torch.Tensor, tensor: torch.Tensor) -> bool:
        if not holds_integers(tensor) or tensor.dim() != 1 or tensor.numel() < _EACH or is_sorted(tensor, 2):
            return False
        if bool((tensor.sort().values.diff() == 0).any()):
            return False
        pairs = copy[: len(copy) // 2 * 2].view(-1, 2)
        pairs[::2, 1] = pairs[::2, 0].clone()
        return True

    return changed_copy(inputs, change)


def _repeats(tensor: torch.Tensor) -> bool:
    """Whether some row of a tensor holds a whole number more than once, in no order."""
    if not holds_integers(tensor) or tensor.numel() < _EACH or is_sorted(tensor):
        return False
    return bool((tensor.sort(-1).values.diff(dim=-1) == 0).any())


WAYS: dict[str, Callable[[Any], Any | None]] = {
    "above zero": partial(of_sign, sign=1),
    "below zero": partial(of_sign, sign=-1),
    "alike": alike,
    "of one value": of_one_value,
}
"""By name: what changes inputs so."""
GROUPS: dict[str, Callable[[Any], Any | None]] = {
    "once": partial(lone, times=1),
    "two of one": partial(lone, times=2),
    "twice": twice,
}
"""The same of groups and keys, which come after `without_least`: an edge still names the node that is empty then."""
