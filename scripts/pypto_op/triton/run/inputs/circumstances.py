"""What a file may ask of its call beside shapes and values: whether gradients are on, and where in memory an input begins.

A judged call has no gradients, and the inputs that PyTorch allocates begin at multiples of 64 bytes. A file whose answer is
another one elsewhere would never show it. So one whose text asks gets a further call with gradients, on inputs that begin an
element later.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import torch

from pypto_op.triton.run.inputs.packing import map_tensors, memory_of, tensors_of

TOLD = "in this call gradients were on, and inputs began one element behind a multiple of 64 bytes"
_ASKS = re.compile(r"grad_enabled|requires_grad|grad_fn|is_leaf|data_ptr|storage_offset|getattr|__dict__|vars\(")
"""Names by which a file may ask; one that looks them up may ask, too."""


def asks(paths: Iterable[Path]) -> bool:
    """Whether one of these files may ask so."""
    for path in paths:
        with contextlib.suppress(OSError):
            if _ASKS.search(path.read_text(encoding="utf-8", errors="replace")):
                return True
    return False


def moved(inputs: Any) -> Any:
    """Return the structure with its tensors copied to memory that begins at no multiple of 16 bytes."""
    return map_tensors(inputs, _moved)


@contextlib.contextmanager
def gradients(inputs: Any) -> Iterator[None]:
    """Let gradients be on meanwhile, and let floats among the inputs want some."""
    floats = [tensor for tensor in tensors_of(inputs) if tensor.is_floating_point()]
    try:
        with torch.enable_grad():
            for tensor in floats:
                tensor.requires_grad_(True)
            yield
    finally:
        for tensor in floats:
            tensor.requires_grad_(False)


def _moved(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.is_complex() or not tensor.numel() or tensor.storage_offset():
        return tensor
    memory = memory_of(tensor)
    wider = torch.empty(len(memory) + 1, dtype=tensor.dtype, device=tensor.device)
    wider[1:].copy_(memory)
    return wider.as_strided(tensor.size(), tensor.stride(), 1)
