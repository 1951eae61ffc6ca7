"""Arithmetic of the comparison on a flat piece of tensor: exact differences, distances in ULP, special values."""

from __future__ import annotations

import math
import sys

import torch

_INT_OF_WIDTH = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_INT64_MIN = -(2**63)


def json_number(value: float) -> float:
    """Return `value` for JSON, which knows no infinity: the greatest float64 stands for it."""
    return min(float(value), sys.float_info.max)


def as_wide(tensor: torch.Tensor) -> torch.Tensor:
    """Return a floating or complex piece as float64 or complex128; every narrower value is kept exactly."""
    return tensor.to(torch.complex128 if tensor.is_complex() else torch.float64)


def as_int64(tensor: torch.Tensor) -> torch.Tensor:
    """Return an integer or bool piece as int64, in its order; uint64 is shifted, so differences stay."""
    if tensor.dtype == torch.uint64:
        return tensor.view(torch.int64) ^ _INT64_MIN
    return tensor.to(torch.int64)


def int_distance(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """Return |first - second| of two int64 pieces as float64, right even where int64 overflows."""
    wrapped = torch.where(first > second, first - second, second - first)
    return wrapped.to(torch.float64) + (wrapped < 0).to(torch.float64) * 2.0**64


def ulp_distance(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """Return how many representable numbers lie between two finite pieces of one float dtype, as float64.

    The bit patterns of IEEE-like floats are sign and magnitude; read as integers they are in order of value.
    """
    left, right = _ordinal(first), _ordinal(second)
    if first.element_size() < 8:
        return (left - right).abs_().to(torch.float64)
    return int_distance(left, right)


def _ordinal(tensor: torch.Tensor) -> torch.Tensor:
    """Return the magnitude with its sign as int64: bits of negative floats count downwards, both zeros are 0."""
    width = 8 * tensor.element_size()
    bits = tensor.view(_INT_OF_WIDTH[tensor.element_size()])
    negative = bits >> (width - 1)
    magnitude_mask: int = (1 << (width - 1)) - 1
    return ((bits ^ (negative & magnitude_mask)) - negative).to(torch.int64)


def all_finite(wide: torch.Tensor) -> bool:
    """Return True only if a float64 or complex128 piece is finite; False also when its sum overflows.

    One pass, where asking each element takes several. A caller that hears False looks closer.
    """
    total = complex(wide.sum().item())
    return math.isfinite(total.real) and math.isfinite(total.imag)


def special_kind(wide: torch.Tensor) -> torch.Tensor:
    """Return 0 for finite, 1 for NaN, 2 for +Inf, 3 for -Inf; for complex 4 * real kind + imag kind."""
    if wide.is_complex():
        parts = torch.view_as_real(wide)
        return 4 * special_kind(parts[..., 0]) + special_kind(parts[..., 1])
    kind = torch.zeros(wide.shape, dtype=torch.uint8, device=wide.device)
    if all_finite(wide):
        return kind
    kind[torch.isnan(wide)] = 1
    kind[wide == torch.inf] = 2
    kind[wide == -torch.inf] = 3
    return kind


def count_nan_inf(kind: torch.Tensor) -> tuple[int, int]:
    """Return how many elements are (or have a part that is) NaN, and how many are Inf without a NaN."""
    if not bool(kind.any()):
        return 0, 0
    real, imag = kind // 4, kind % 4
    nan = (real == 1) | (imag == 1)
    inf = ((real >= 2) | (imag >= 2)) & ~nan
    return int(nan.sum()), int(inf.sum())
