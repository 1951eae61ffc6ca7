"""Numbers of a flat piece of tensor: exact differences, ULP distances, kinds of special values."""

from __future__ import annotations

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
    return int_distance(_ordinal(first), _ordinal(second))


def _ordinal(tensor: torch.Tensor) -> torch.Tensor:
    integer = _INT_OF_WIDTH[tensor.element_size()]
    bits = tensor.view(integer).to(torch.int64)
    magnitude_mask = 2 ** (8 * tensor.element_size() - 1) - 1
    return torch.where(bits < 0, -(bits & magnitude_mask), bits)


def special_kind(wide: torch.Tensor) -> torch.Tensor:
    """Return 0 for finite, 1 for NaN, 2 for +Inf, 3 for -Inf; for complex 4 * real kind + imag kind."""
    if wide.is_complex():
        parts = torch.view_as_real(wide)
        return 4 * special_kind(parts[..., 0]) + special_kind(parts[..., 1])
    kind = torch.zeros(wide.shape, dtype=torch.uint8)
    if bool(torch.isfinite(wide).all()):
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
