"""Whether a device rounds the operands of float32 products to TF32, where no file says so.

PyTorch lets cuDNN do that to convolutions and recurrent layers, unasked. They then err by 1e-3, which no kernel in float32 does.
So a reference answers without it, and is timed as PyTorch has it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import torch

_SAYS = ("allow_tf32", "set_float32_matmul_precision", "fp32_precision")
_off = False


def off(path: Path) -> None:
    """Switch it off in this process; what a task's file at `path` says holds, where it says anything."""
    global _off
    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    _off = not any(word in text for word in _SAYS)
    if _off:
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False


@contextlib.contextmanager
def usual() -> Iterator[None]:
    """Let cuDNN meanwhile compute as PyTorch has it, where it was switched off."""
    torch.backends.cudnn.allow_tf32 |= _off
    try:
        yield
    finally:
        torch.backends.cudnn.allow_tf32 &= not _off
