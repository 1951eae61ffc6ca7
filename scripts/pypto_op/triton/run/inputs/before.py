"""Makes the inputs of a call before the judged one: half of each tensor is as in the judged call, the rest is other values.

A kernel that recognises a row by a few of its elements, and then returns what it kept of that row, is wrong for the rest of it.

Where a reference keeps something from call to call, one call is judged after several: a ring of four is full then, a warm-up is
over, and what was put aside three calls ago comes back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from pypto_op.triton.run.inputs.packing import tensors_of
from pypto_op.triton.run.inputs.refresh import Way, refresh, ways_of

SAME, ROLLED, SHARED, OTHER, SEVERAL = 0, 1, 2, 3, 4
"""The very same values; each float rolled and scaled (`refresh`); the same, but for most of the first half, which stays; those
of another case (`neighbours`); several calls, each with floats that are rolled by one place more."""
KEPT = "kept"
"""The name of the pass with `SEVERAL`, beside those of `neighbours`."""
CALLS = 6
"""So many calls `SEVERAL` are."""
TOLD = f"before this call the model was called {CALLS} times with other values: what it keeps from call to call is wrong now"
_STEP = 2.0**-6
_OTHER = 17
"""Of so many elements of the half that stays, one is another."""


def calls(turn: int) -> list[int]:
    """Return for each call before the judged one how far its values are rolled (`fill`)."""
    return [*range(1, CALLS + 1)] if turn == SEVERAL else [min(turn, ROLLED)]


def fill(working: Any, base: Any, turn: int, shift: int | None = None, ways: Sequence[Way] | None = None) -> None:
    """Write the values of a call before into `working`; those of the judged call are in `base`.

    Where there are no floats, whole numbers stay for `SEVERAL`: other ones may be no valid ones.

    Args:
        working: as `base`, with memory of its own.
        base: stays as it is.
        turn: how the values differ.
        shift: one of `calls(turn)`; None: the first.
        ways: of `refresh.ways_of(base)`, for who fills often.
    """
    floats = any(tensor.is_floating_point() for tensor in tensors_of(base))
    shift = min(turn, ROLLED) if shift is None else shift
    ways = ways_of(base) if ways is None else ways
    refresh(working, base, shift if floats or turn != SEVERAL else 0, ways)
    for target, (_, scales) in zip(tensors_of(working), ways, strict=True) if turn == SEVERAL else ():
        if scales:  # of few rows, and few factors, some calls would have the same values
            target.mul_(1 - shift * _STEP)
    if turn != SHARED:
        return
    for target, source in zip(tensors_of(working), tensors_of(base), strict=True):
        axis = next((axis for axis, size in enumerate(source.shape) if size > 1 and source.stride(axis)), None)
        if source.is_floating_point() and axis is not None and 0 not in source.stride():
            mine, theirs = (one.narrow(axis, 0, source.shape[axis] // 2) for one in (target, source))
            stays = torch.arange(mine.numel(), device=mine.device, dtype=torch.int32).reshape(mine.shape) % _OTHER != 0
            mine.copy_(torch.where(stays, theirs, mine))
