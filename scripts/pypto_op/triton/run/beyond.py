"""What lies behind the inputs on a GPU: bytes of 255, which are NaN in each float format and -1 in whole numbers.

In the interpreter an access beyond a tensor is seen. A device reads what lies there: often zeros of fresh memory, which may be
what a mask would have given.
"""

from __future__ import annotations

from typing import Any

import torch

from pypto_op.triton.run.packing import map_tensors, memory_of, same_layout

_BYTE = 255
_BESIDE = 1 << 16
"""So many bytes: a row or a block of what is read beyond the end."""


def copies(inputs: Any) -> Any:
    """Return the structure with copies of its tensors, of the same layout, on a GPU with such bytes behind each."""
    return map_tensors(inputs, _copy)


def _copy(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.device.type != "cuda" or not tensor.numel():
        return same_layout(tensor)
    plain = tensor.detach().resolve_conj().resolve_neg()
    memory = torch.full((memory_of(plain).nbytes + _BESIDE,), _BYTE, dtype=torch.uint8, device=tensor.device)
    copy = torch.empty(0, dtype=plain.dtype, device=tensor.device)
    copy.set_(memory.untyped_storage(), 0, plain.size(), plain.stride())
    memory_of(copy).copy_(memory_of(plain))
    return copy
