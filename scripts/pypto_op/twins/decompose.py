"""Torch operators that hide a sum (softmax, layer_norm, var, ...), broken into operators that show it.

The decompositions are torch's own, except for variances, whose sum torch's keep hidden, and for those of which torch's own take
0.4 s (softmax) or 1.5 s (logsumexp, dot) of a process, because they import sympy and torch's compiler.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch

from pypto_op.twins import convolutions

_OF_TORCH = (
    "_scaled_dot_product_flash_attention_for_cpu",
    "_fused_rms_norm",
    "_native_batch_norm_legit",
    "addbmm",
    "addmm",
    "addmv",
    "baddbmm",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "huber_loss",
    "linalg_vector_norm",
    "mse_loss",
    "multi_margin_loss",
    "mv",
    "native_group_norm",
    "native_layer_norm",
    "native_layer_norm_backward",
    "native_group_norm_backward",
    "native_batch_norm_backward",
    "_fused_rms_norm_backward",
    "nll_loss2d_forward",
    "nll_loss_forward",
    "norm",
    "smooth_l1_loss",
    "soft_margin_loss",
)

_VARIANCES = ("var", "std", "var_mean", "std_mean")

_HALF = (torch.float16, torch.bfloat16)

_SOFTMAXES = ("_softmax", "_log_softmax", "_softmax_backward_data", "_log_softmax_backward_data")

HIDING_A_SUM = (*_OF_TORCH, *_VARIANCES, *_SOFTMAXES, "logsumexp", "dot")
"""Names of the operators that `decompositions` takes apart into a few lines; a convolution becomes some for each tap."""


@lru_cache(maxsize=1)
def decompositions() -> dict[Any, Callable[..., Any]]:
    """Return operator overload -> function that computes the same with plainer operators."""
    from torch._decomp import decomposition_table

    table = {}
    for name in _OF_TORCH:
        packet = getattr(torch.ops.aten, name, None)
        for overload in packet.overloads() if packet is not None else ():
            operator = getattr(packet, overload)
            if operator in decomposition_table:
                table[operator] = decomposition_table[operator]
    aten = torch.ops.aten
    table |= {aten._softmax.default: _softmax, aten._log_softmax.default: _log_softmax}
    table |= {aten.logsumexp.default: _logsumexp, aten.dot.default: _dot}
    table |= {aten._softmax_backward_data.default: _softmax_backward}
    table |= {aten._log_softmax_backward_data.default: _log_softmax_backward}
    return table | _variances() | convolutions.table()


def _softmax(x: torch.Tensor, dim: int, half_to_float: bool) -> torch.Tensor:
    """Return exp(x - max) over its sum, computed in float32 at least."""
    if x.numel() == 0:
        return x.to(torch.float32) if half_to_float else x.clone()
    wide = x.to(torch.float32) if x.dtype in _HALF else x
    exponents = torch.exp(wide - torch.amax(wide, dim, keepdim=True))
    result = exponents / torch.sum(exponents, dim, keepdim=True)
    return result if half_to_float or result.dtype == x.dtype else result.to(x.dtype)


def _log_softmax(x: torch.Tensor, dim: int, half_to_float: bool) -> torch.Tensor:
    """Return x - max - log(sum(exp(x - max))), computed in float32 at least."""
    if x.numel() == 0:
        return x.to(torch.float32) if half_to_float else x.clone()
    wide = x.to(torch.float32) if x.dtype in _HALF else x
    distance = wide - torch.amax(wide, dim, keepdim=True)
    result = distance - torch.log(torch.sum(torch.exp(distance), dim, keepdim=True))
    return result if half_to_float or result.dtype == x.dtype else result.to(x.dtype)


def _softmax_backward(grad: torch.Tensor, output: torch.Tensor, dim: int, input_dtype: torch.dtype) -> torch.Tensor:
    """Return the gradient of softmax's input, output * (grad - sum of output * grad) as torch rounds it."""
    shares = grad * output
    return (shares - output * torch.sum(shares, dim, keepdim=True)).to(input_dtype)


def _log_softmax_backward(grad: torch.Tensor, output: torch.Tensor, dim: int, input_dtype: torch.dtype) -> torch.Tensor:
    return (grad - torch.exp(output) * torch.sum(grad, dim, keepdim=True)).to(input_dtype)


def _logsumexp(x: torch.Tensor, dim: Any, keepdim: bool = False) -> torch.Tensor:
    """Return max + log(sum(exp(x - max))) over the axes; of an infinite maximum nothing is taken off."""
    axes = [dim] if isinstance(dim, int) else list(dim) or list(range(x.dim()))
    wide = x if x.is_floating_point() else x.to(torch.get_default_dtype())
    if wide.numel() == 0 or not axes:
        return torch.log(torch.sum(torch.exp(wide), axes, keepdim=keepdim)) if axes else wide.clone()
    most = torch.amax(wide, axes, keepdim=True)
    most = torch.where(most.abs() == torch.inf, torch.zeros_like(most), most)
    rest = torch.log(torch.sum(torch.exp(wide - most), axes, keepdim=keepdim))
    return rest + (most if keepdim else most.squeeze(axes))


def _dot(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.sum(x * y)


def _variances() -> dict[Any, Callable[..., Any]]:
    aten = torch.ops.aten
    table: dict[Any, Callable[..., Any]] = {}
    for name in _VARIANCES:
        root, with_mean = name.startswith("std"), name.endswith("_mean")
        packet = getattr(aten, name)
        for overload in ("correction", "dim", "default"):
            if overload in packet.overloads():
                table[getattr(packet, overload)] = _variance(overload, root, with_mean)
    return table


def _variance(overload: str, root: bool, with_mean: bool) -> Callable[..., Any]:
    """Return var, std, var_mean or std_mean in two passes: the mean, then the mean square distance to it."""

    def by_correction(x: torch.Tensor, dim: Any = None, *, correction: Any = None, keepdim: bool = False) -> Any:
        return compute(x, dim, 1 if correction is None else correction, keepdim)

    def by_axis(x: torch.Tensor, dim: Any = None, unbiased: bool = True, keepdim: bool = False) -> Any:
        return compute(x, dim, int(unbiased), keepdim)

    def of_all(x: torch.Tensor, unbiased: bool = True) -> Any:
        return compute(x, None, int(unbiased), False)

    def compute(x: torch.Tensor, dim: Any, correction: float, keepdim: bool) -> Any:
        axes = list(range(x.dim())) if dim is None or dim == [] or dim == () else [dim] if isinstance(dim, int) else list(dim)
        count = 1
        for axis in axes:
            count *= x.shape[axis]
        mean = torch.mean(x, axes, keepdim=True) if axes else x
        distance = x - mean
        square = torch.sum(distance * distance, axes, keepdim=keepdim) / max(count - correction, 0) if axes else distance * 0.0
        result = square.sqrt() if root else square
        if not with_mean:
            return result
        return result, mean if keepdim or not axes else torch.mean(x, axes)

    forms: dict[str, Callable[..., Any]] = {"correction": by_correction, "dim": by_axis, "default": of_all}
    return forms[overload]
