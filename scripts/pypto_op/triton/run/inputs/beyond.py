"""What lies around the inputs on a GPU: bytes of 255, which are NaN in each float format and -1 in whole numbers.

In the interpreter an access beyond a tensor is seen. A device reads what lies there: often zeros of fresh memory, which may be
what a mask would have given.
"""

from __future__ import annotations

from typing import Any

import torch

from pypto_op.triton.run.inputs.packing import map_tensors, memory_and_before, plain, same_layout

TOLD = "on a GPU NaN lies around inputs and in fresh memory: an element may be read beyond the end of its tensor"
_BYTE = 255
_BESIDE = 1 << 16
"""So many bytes on either side: a row or a block of what is read beyond an end."""
_SPOILT = 1 << 30
_PART = 16
"""So many bytes of a GPU are spoilt, or this part of what is free."""
_SMALL, _LARGE = 1 << 20, 20 << 20
"""Bytes: PyTorch takes small tensors from other memory than larger ones."""


def copies(inputs: Any) -> Any:
    """Return the structure with copies of its tensors, of the same layout, on a GPU with such bytes around each."""
    return map_tensors(inputs, _copy)


def spoil(device: torch.device) -> None:
    """Fill memory with such bytes that PyTorch gives to later tensors: weights and what kernels write have them behind, too."""
    if device.type != "cuda":
        return
    most = min(_SPOILT, torch.cuda.mem_get_info(device)[0] // _PART)
    for size, some in ((_SMALL, most // 16), (_LARGE, most // 4), (most, most)):
        for block in [torch.empty(size, dtype=torch.uint8, device=device) for _ in range(some // max(1, size))]:
            block.fill_(_BYTE)


class _Inside:
    """The memory of a block of bytes, from one of them on, as a storage of its own (`torch.as_tensor`)."""

    def __init__(self, block: torch.Tensor, first: int) -> None:
        shape, place = (len(block) - first,), (block.data_ptr() + first, False)
        self.block, self.__cuda_array_interface__ = block, {"shape": shape, "typestr": "|u1", "data": place, "version": 3}


def _copy(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.device.type != "cuda" or not tensor.numel():
        return same_layout(tensor)
    seen = plain(tensor)
    memory, before = memory_and_before(seen)
    size = memory.nbytes + 2 * _BESIDE
    block = torch.full((size,), _BYTE, dtype=torch.uint8, device=tensor.device)
    inside = torch.as_tensor(_Inside(block, _BESIDE), device=tensor.device)
    copy = torch.empty(0, dtype=seen.dtype, device=tensor.device)
    copy.set_(inside.untyped_storage(), before, seen.size(), seen.stride())
    memory_and_before(copy)[0].copy_(memory)
    return copy
