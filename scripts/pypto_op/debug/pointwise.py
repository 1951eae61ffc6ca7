"""Splits element-wise torch operators, such as silu, into the steps that a kernel computes one after the other.

The formulas are those of torch's documentation. Torch's own decompositions compute the same, but the first one imports torch's
compiler, which takes as much processor time as a whole search for a divergence. Numbers of 16 bits are computed in float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch


def _wide(value: Any) -> Any:
    half = isinstance(value, torch.Tensor) and value.dtype in (torch.float16, torch.bfloat16)
    return value.to(torch.float32) if half else value


def _gelu(x: torch.Tensor, *, approximate: str = "none") -> torch.Tensor:
    if approximate == "tanh":
        inner = math.sqrt(2.0 / math.pi) * (x + 0.044715 * (x * x * x))
        return 0.5 * x * (1.0 + torch.tanh(inner))
    return 0.5 * x * (1.0 + torch.erf(x * math.sqrt(0.5)))


def _silu(x: torch.Tensor) -> torch.Tensor:
    return x * torch.sigmoid(x)


def _softplus(x: torch.Tensor, beta: float = 1.0, threshold: float = 20.0) -> torch.Tensor:
    scaled = x if beta == 1 else x * beta
    bent = torch.log1p(torch.exp(scaled))
    return torch.where(scaled > threshold, x, bent if beta == 1 else torch.div(bent, beta))


def _mish(x: torch.Tensor) -> torch.Tensor:
    return x * torch.tanh(_softplus(x))


def _addcmul(x: torch.Tensor, one: torch.Tensor, two: torch.Tensor, *, value: float = 1.0) -> torch.Tensor:
    product = one * two
    return x + (product if value == 1 else product * value)


def _addcdiv(x: torch.Tensor, one: torch.Tensor, two: torch.Tensor, *, value: float = 1.0) -> torch.Tensor:
    quotient = one / two
    return x + (quotient if value == 1 else quotient * value)


def _lerp(x: torch.Tensor, end: torch.Tensor, weight: Any) -> torch.Tensor:
    part: torch.Tensor = weight * (end - x)
    return x + part


def _hardtanh(x: torch.Tensor, min_val: float = -1.0, max_val: float = 1.0) -> torch.Tensor:
    return torch.clamp(x, min_val, max_val)


STEPS: Mapping[str, Callable[..., torch.Tensor]] = {
    "gelu": _gelu,
    "silu": _silu,
    "softplus": _softplus,
    "mish": _mish,
    "addcmul": _addcmul,
    "addcdiv": _addcdiv,
    "lerp": _lerp,
    "hardtanh": _hardtanh,
}
"""Name of an operator -> what computes it in plain steps."""


def in_steps(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Compute an operator of `STEPS`; the result has the dtype of its widest tensor, as torch's has."""
    floats = [one.dtype for one in (*args, *kwargs.values()) if isinstance(one, torch.Tensor)]
    result = STEPS[name](*map(_wide, args), **{key: _wide(value) for key, value in kwargs.items()})
    dtype = floats[0]
    for one in floats[1:]:
        dtype = torch.promote_types(dtype, one)
    return result.to(dtype) if dtype.is_floating_point and result.dtype != dtype else result
