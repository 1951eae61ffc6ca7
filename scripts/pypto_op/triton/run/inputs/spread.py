"""Lets inputs lie far beyond the task's own: floats of both signs and large, whole numbers up to some thousands (`reaching`)."""

from __future__ import annotations

from typing import Any

import torch

from pypto_op.triton.run.inputs import skewed
from pypto_op.triton.run.inputs.edges import is_ordered, is_sorted
from pypto_op.triton.run.inputs.packing import changed_copy, holds_integers, memory_of

FAR = 2.0**14
BOTH, UP, DOWN = "both", "up", "down"
_ONE_SIGN, _ONE_SIGN_HUGE = 8.0, 128.0
_FAR_HALF, _HUGE_HALF = 16.0, 128.0
_SHARE = 4
"""One whole number of so many is zero, where some shall be."""


def everything(inputs: Any, way: str, *, floats: bool, whole: bool, zeros: bool = False) -> Any | None:
    """Return inputs far beyond the task's, of whole numbers some `zeros`; None where none can be."""
    movable = iter(skewed.movable(inputs))

    def change(copy: torch.Tensor, tensor: torch.Tensor) -> bool:
        if next(movable) and floats:
            _floats(copy, tensor)
            return True
        if whole and holds_integers(tensor):
            _whole(copy, way)
            if zeros and not is_sorted(tensor):
                memory_of(copy)[::_SHARE] = 0
            return tensor.numel() > 1
        return False

    return changed_copy(inputs, change)


def _floats(copy: torch.Tensor, tensor: torch.Tensor, one_sign: float = _ONE_SIGN, half: float = _FAR_HALF) -> None:
    """Let a tensor of one sign have both, and one around zero be far larger."""
    low, high = (float(end) for end in torch.aminmax(tensor))
    memory = memory_of(copy)
    if low < 0 < high:
        memory.mul_((half if tensor.dtype is torch.float16 else FAR) / max(-low, high))
    else:
        memory.sub_((low + high) / 2).mul_(2 * one_sign / (high - low))


def more(copy: torch.Tensor, tensor: torch.Tensor) -> None:
    """The same, farther, with rows that are far below zero throughout."""
    _floats(copy, tensor, _ONE_SIGN_HUGE, _HUGE_HALF)
    if not is_ordered(tensor):
        skewed.sunk(copy, float(copy.min()))


def _whole(copy: torch.Tensor, way: str) -> None:
    """Spread whole numbers over those of their dtype up to some thousands, on both sides or on one."""
    limits = torch.iinfo(copy.dtype)
    memory = memory_of(copy)
    low, high = max(limits.min, -int(FAR)), min(limits.max, int(FAR))
    first, last = int(memory.min()), int(memory.max())
    low, high = min(first, high) if way == UP else low, max(last, low) if way == DOWN else high
    places = (memory.double() - first) / max(1, last - first)
    memory.copy_((low + places * (high - low)).to(copy.dtype))
