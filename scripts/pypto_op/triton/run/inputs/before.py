"""Makes the inputs of a call before the judged one: half of each tensor is as in the judged call, the rest is other values.

A kernel that recognises a row by a few of its elements, and then returns what it kept of that row, is wrong for the rest of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from pypto_op.triton.run.inputs.packing import tensors_of
from pypto_op.triton.run.inputs.refresh import Way, refresh

SAME, ROLLED, SHARED, OTHER = 0, 1, 2, 3
"""The very same values; each float rolled and scaled (`refresh`); the same, but for most of the first half, which stays; those
of another case (`neighbours`)."""
_OTHER = 17
"""Of so many elements of the half that stays, one is another."""


def fill(working: Any, base: Any, turn: int, ways: Sequence[Way] | None = None) -> None:
    """Write the values of the call before into `working`; those of the judged call are in `base` (`ways`: see `refresh`)."""
    refresh(working, base, min(turn, ROLLED), ways)
    if turn != SHARED:
        return
    for target, source in zip(tensors_of(working), tensors_of(base), strict=True):
        axis = next((axis for axis, size in enumerate(source.shape) if size > 1 and source.stride(axis)), None)
        if source.is_floating_point() and axis is not None and 0 not in source.stride():
            mine, theirs = (one.narrow(axis, 0, source.shape[axis] // 2) for one in (target, source))
            stays = torch.arange(mine.numel(), device=mine.device, dtype=torch.int32).reshape(mine.shape) % _OTHER != 0
            mine.copy_(torch.where(stays, theirs, mine))
