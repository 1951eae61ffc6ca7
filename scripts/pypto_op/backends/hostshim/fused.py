"""Operators that torch_npu alone has, computed with torch, for the goldens of scripts that were written for the device.

Each follows the public description; how the device itself rounds is not known here. Scripts have these, candidates do not.
"""

from __future__ import annotations

import sys

import torch
from torch import Tensor

_LARGEST_INT8 = 127.0


def npu_dynamic_quant(input: Tensor, *, smooth_scales: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Return int8 values and the float32 scale of each row: the largest magnitude of the row becomes 127."""
    values = input.float() if smooth_scales is None else input.float() * smooth_scales.float()
    scale = values.abs().amax(-1) / _LARGEST_INT8
    steps = values / scale.unsqueeze(-1).clamp_min(torch.finfo(torch.float32).tiny)
    return steps.round().clamp(-128, _LARGEST_INT8).to(torch.int8), scale


def npu_quantize(
    input: Tensor, scales: Tensor, zero_points: Tensor | None, dtype: torch.dtype, axis: int = 1, div_mode: bool = True
) -> Tensor:
    """Return int8 values along `axis`: input divided by `scales`, or times them, plus `zero_points`, rounded."""
    shape = [1] * input.dim()
    shape[axis] = -1
    factor = scales.float().reshape(shape)
    steps = input.float() / factor if div_mode else input.float() * factor
    if zero_points is not None:
        steps = steps + zero_points.float().reshape(shape)
    kind = torch.uint8 if dtype is torch.quint8 else torch.int8
    limits = torch.iinfo(kind)
    return steps.round().clamp(limits.min, limits.max).to(kind)


def npu_quant_matmul(
    x1: Tensor,
    x2: Tensor,
    scale: Tensor,
    *,
    offset: Tensor | None = None,
    pertoken_scale: Tensor | None = None,
    bias: Tensor | None = None,
    output_dtype: torch.dtype | None = None,
) -> Tensor:
    """Return the product of int8 matrices, times the scales of columns and rows, in `output_dtype` (float16).

    A whole-numbered bias is added to the product's whole numbers, another one to the result.
    """
    product = torch.matmul(x1.double(), x2.double())  # whole numbers below 2 ** 53 are exact
    whole = bias is not None and not bias.is_floating_point()
    found = (product + bias.double() if bias is not None and whole else product).float() * scale.float()
    if pertoken_scale is not None:
        found = found * pertoken_scale.float().unsqueeze(-1)
    if offset is not None:
        found = found + offset.float()
    if bias is not None and not whole:
        found = found + bias.float()
    return found.to(output_dtype or torch.float16)


def npu_swiglu(input: Tensor, dim: int = -1) -> Tensor:
    """Return SiLU of the first half of an axis times the second."""
    gate, up = input.float().chunk(2, dim)
    return (torch.nn.functional.silu(gate) * up).to(input.dtype)


def npu_rms_norm(input: Tensor, gamma: Tensor, epsilon: float = 1e-6) -> tuple[Tensor, Tensor]:
    """Return the input over the root of its mean square along gamma's axes, times gamma, and one over that root (float32)."""
    axes = tuple(range(-gamma.dim(), 0))
    rstd = torch.rsqrt(input.float().pow(2).mean(axes, keepdim=True) + epsilon)
    return (input.float() * rstd * gamma.float()).to(input.dtype), rstd


def npu_rotary_mul(input: Tensor, r1: Tensor, r2: Tensor, rotary_mode: str = "half") -> Tensor:
    """Return the input times r1 plus the input turned by a quarter times r2; pairs are halves of the last axis, or neighbours."""
    values = input.float()
    if rotary_mode == "half":
        first, second = values.chunk(2, -1)
        turned = torch.cat((-second, first), -1)
    else:
        turned = torch.stack((-values[..., 1::2], values[..., ::2]), -1).flatten(-2)
    return (values * r1.float() + turned * r2.float()).to(input.dtype)


def install() -> None:
    """Give `torch_npu` these operators."""
    names = ("npu_dynamic_quant", "npu_quantize", "npu_quant_matmul", "npu_swiglu", "npu_rms_norm", "npu_rotary_mul")
    for name in names:
        setattr(sys.modules["torch_npu"], name, globals()[name])
