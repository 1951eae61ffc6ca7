"""Says in JSON what a case's inputs are, without their values."""

from __future__ import annotations

import math
from typing import Any

import torch

_MOST = 32


def describe(values: Any) -> list[dict[str, Any]]:
    """Return `input_desc`: one entry per argument."""
    return [_one(value) for value in values[:_MOST]] if isinstance(values, (list, tuple)) else []


def _one(value: Any) -> dict[str, Any]:
    if isinstance(value, torch.Tensor):
        return {"type": "tensor", "shape": list(value.shape), "dtype": str(value.dtype)}
    if value is None:
        return {"type": "none"}
    if isinstance(value, (list, tuple, dict)):
        return {"type": "list", "repr": _words(value)}
    if isinstance(value, float) and not math.isfinite(value):
        return {"type": "scalar", "repr": repr(value)}
    if isinstance(value, (bool, int, float, str)):
        return {"type": "scalar", "value": value if not isinstance(value, int) or abs(value) < 2**53 else str(value)}
    return {"type": "scalar", "repr": repr(value)[:200]}


def _words(value: Any) -> str:
    items = value.values() if isinstance(value, dict) else value
    shown = [f"{list(v.shape)} {v.dtype}" if isinstance(v, torch.Tensor) else repr(v)[:40] for v in items]
    text = f"{type(value).__name__} of {', '.join(shown[:8])}"
    return text[:480]
