"""Torch operators that hide a sum (softmax, layer_norm, var, ...), broken into operators that show it.

The decompositions are torch's own; this module only says which operators need one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch

_HIDING_A_SUM = (
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
    "std",
    "std_mean",
    "var",
    "var_mean",
)


@lru_cache(maxsize=1)
def decompositions() -> dict[Any, Callable[..., Any]]:
    """Return operator overload -> function that computes the same with plainer operators."""
    from torch._decomp import decomposition_table

    table = {}
    for name in _HIDING_A_SUM:
        packet = getattr(torch.ops.aten, name, None)
        for overload in packet.overloads() if packet is not None else ():
            operator = getattr(packet, overload)
            if operator in decomposition_table:
                table[operator] = decomposition_table[operator]
    return table
