"""Torch operators that hide a sum (softmax, layer_norm, var, ...), broken into operators that show it.

The decompositions are torch's own, except for variances: torch's keep the sum hidden.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch

_OF_TORCH = (
    "_softmax",
    "_log_softmax",
    "_scaled_dot_product_flash_attention_for_cpu",
    "_fused_rms_norm",
    "_native_batch_norm_legit",
    "addbmm",
    "addmm",
    "addmv",
    "baddbmm",
    "dot",
    "linalg_vector_norm",
    "logsumexp",
    "mse_loss",
    "mv",
    "native_group_norm",
    "native_layer_norm",
    "norm",
)

_OF_OURS = ("var", "std", "var_mean", "std_mean")

HIDING_A_SUM = (*_OF_TORCH, *_OF_OURS)
"""Names of the operators that `decompositions` takes apart."""


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
    return table | _variances()


def _variances() -> dict[Any, Callable[..., Any]]:
    aten = torch.ops.aten
    table: dict[Any, Callable[..., Any]] = {}
    for name in _OF_OURS:
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
