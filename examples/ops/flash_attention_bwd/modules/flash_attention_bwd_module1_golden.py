# Derived from module_interfaces.yaml - do not hand-edit. On YAML changes, regenerate.
# generated during Phase M1 scaffolding; do not hand-edit below the header
"""Cumulative golden of M1 of flash_attention_bwd: the score gradient ds and dv."""

import math

import torch


def flash_attention_bwd_module1_golden(q, k, v, out, lse, dout, causal):
    """Return (ds, dv), the live outputs of M1.

    Arguments as in flash_attention_bwd_golden. ds: [BH, S, S], gradient of q k^T, float32 (float64 for
    float64 inputs). dv: [BH, S, D] of q's dtype.
    """
    wide = torch.promote_types(q.dtype, torch.float32)
    scale = 1.0 / math.sqrt(q.shape[-1])
    scores = torch.matmul(q.to(wide), k.to(wide).transpose(1, 2)) * scale  # [BH, S, S]
    if causal:
        position = torch.arange(q.shape[1], device=q.device)
        future = position.unsqueeze(0) > position.unsqueeze(1)  # [S, S]
        scores = scores.masked_fill(future, float("-inf"))
    weights = torch.exp(scores - lse.to(wide).unsqueeze(-1))  # [BH, S, S]
    dv = torch.matmul(weights.transpose(1, 2), dout.to(wide))  # [BH, S, D]
    row_dot = (dout.to(wide) * out.to(wide)).sum(dim=-1, keepdim=True)  # [BH, S, 1]
    ds = weights * (torch.matmul(dout.to(wide), v.to(wide).transpose(1, 2)) - row_dot) * scale
    return ds, dv.to(q.dtype)
