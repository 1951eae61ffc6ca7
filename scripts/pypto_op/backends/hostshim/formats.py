"""Memory layouts of the pretended NPU: a tensor that is cast to NZ is only marked as NZ, and stays ND in memory."""

from __future__ import annotations

import enum
from typing import Any

import torch

_TAG = "_pypto_op_npu_format"


class Format(enum.IntEnum):
    """torch_npu's names of layouts, with the numbers that CANN gives them."""

    UNDEFINED = -1
    NCHW = 0
    NHWC = 1
    ND = 2
    NC1HWC0 = 3
    FRACTAL_Z = 4
    FRACTAL_NZ = 29


def get_npu_format(tensor: torch.Tensor) -> int:
    """Return the layout that a tensor says it has; ND where nothing was said."""
    return int(getattr(tensor, _TAG, Format.ND))


def is_tagged(tensor: torch.Tensor) -> bool:
    """Whether a tensor says that it has another layout than ND."""
    return get_npu_format(tensor) != Format.ND


def npu_format_cast(tensor: torch.Tensor, layout: Any) -> torch.Tensor:
    """Return a tensor that says it has `layout` (a number, a `Format`, or a tensor whose layout is meant)."""
    wanted = _number(layout)
    if get_npu_format(tensor) == wanted:
        return tensor
    return npu_format_cast_(tensor.contiguous().view_as(tensor), wanted)  # a copy on a device; a write alone tells the two apart


def npu_format_cast_(tensor: torch.Tensor, layout: Any) -> torch.Tensor:
    """Let a tensor say that it has `layout`."""
    setattr(tensor, _TAG, _number(layout))
    return tensor


def _number(layout: Any) -> int:
    return get_npu_format(layout) if isinstance(layout, torch.Tensor) else int(layout)
