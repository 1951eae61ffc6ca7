"""Elements of float inputs that no kernel reads, though the reference needs them: a block or a tail that a loop leaves out.

A sum shows such a block at once. A maximum over 1024 columns that skips 32 of them is right for 31 rows of 32. But the
interpreter sees each load. So where the first pass read one part of an input and not the other, that pass is judged once more
with extremes in the part that was not read: a kernel that reads the same elements as before gives the same answer as before. The
pass is left out where the reference's answer stays, too (rows that no index names, a half that a mask hides).
"""

from __future__ import annotations

import functools
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from pypto_op.triton.run.inputs import edges
from pypto_op.triton.run.inputs.packing import changed_copy, memory_of

MOVE = "unread"
"""The name of this move, beside those of `skewed`."""
_MOST = 4096
"""So many elements of each input get other values."""
_NEAR = 0.01
"""The part of a range, at each of its ends, in which these lie."""
TOLD = "in this pass extremes stood in elements of the inputs that no kernel had read: a loop may leave out a block or an end"


@dataclass
class _Watched:
    start: int
    end: int
    size: int
    read: Any  # by element of memory


class Unread:
    """Stands before the interpreter's loads and atomics, and notes which elements of the inputs they read."""

    def __init__(self) -> None:
        self._watched: dict[int, _Watched] = {}

    def install(self, builder: Any) -> None:
        """Wrap the functions of the interpreter's builder that all reads come to."""
        for name, pointer, mask in (
            ("create_masked_load", 0, 1),
            ("create_atomic_rmw", 1, 3),
            ("create_atomic_cas", 0, None),
        ):
            setattr(builder, name, self._around(getattr(builder, name), pointer, mask))

    def begin(self, inputs: Sequence[torch.Tensor]) -> None:
        """Watch these tensors from now on, and no others."""
        self._watched = {}
        for position, tensor in enumerate(inputs):
            if tensor.is_floating_point() and tensor.device.type == "cpu" and tensor.numel():
                count = memory_of(tensor).numel()
                start, size = tensor.data_ptr(), tensor.element_size()
                self._watched[position] = _Watched(start, start + count * size, size, np.zeros(count, dtype=bool))

    def found(self) -> dict[str, list[int]]:
        """Return by position of an input, of which a part was read, elements of its memory that were not; watch no more."""
        parts = {}
        for position, one in self._watched.items():
            rest = np.flatnonzero(~one.read)
            if rest.size and one.read.any():
                step = -(-rest.size // _MOST)
                parts[str(position)] = rest[secrets.randbelow(step) :: step].tolist()
        self._watched = {}
        return parts

    def _around(self, original: Any, pointer: int, mask: int | None) -> Any:
        @functools.wraps(original)
        def reading(builder: Any, *args: Any, **further: Any) -> Any:
            if self._watched:
                self._note(args[pointer].data, None if mask is None else args[mask])
            return original(builder, *args, **further)

        return reading

    def _note(self, addresses: Any, mask: Any) -> None:
        on = None if mask is None else np.broadcast_to(mask.data, addresses.shape).astype(bool, copy=False)
        addresses = addresses.reshape(-1) if on is None or on.all() else addresses[on]
        if not addresses.size:
            return
        low, high = int(addresses.min()), int(addresses.max())
        for one in self._watched.values():
            if high < one.start or low >= one.end:
                continue
            inside = addresses
            if low < one.start or high >= one.end:
                inside = addresses[(addresses >= one.start) & (addresses < one.end)]
            one.read[(inside - np.uint64(one.start)) // np.uint64(one.size)] = True


def moved(inputs: Any, movable: Sequence[bool], places: Mapping[str, Sequence[int]]) -> Any | None:
    """Return inputs of the same layout with extremes at these places of their memory; None: none can have them.

    Args:
        inputs: stay as they are.
        movable: which of their tensors may be changed (`skewed.movable`).
        places: of `Unread.found`.
    """
    left = iter(enumerate(movable))

    def change(copy: torch.Tensor, tensor: torch.Tensor) -> bool:
        position, moves = next(left)
        wanted = places.get(str(position), ())
        if not moves or not wanted or edges.is_ordered(tensor):
            return False
        _write(memory_of(copy), torch.tensor(wanted, device=tensor.device))
        return True

    return changed_copy(inputs, change)


def _write(memory: torch.Tensor, places: torch.Tensor) -> None:
    """Write the greatest and the least by turns; zeros (of a triangle, say) stay."""
    low, high = (float(end) for end in torch.aminmax(memory))
    was = memory[places].double()
    turns = torch.arange(len(places), device=memory.device)
    within = (turns * 0.618034 % 1.0) * _NEAR * (high - low)  # no two alike
    extremes = torch.where(turns % 2 == 0, high - within, low + within)
    memory[places] = torch.where(was != 0, extremes, was).to(memory.dtype)
