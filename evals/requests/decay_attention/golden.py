"""Hidden golden: linear attention with decay, token by token."""

import math

import torch


def decay_attn_golden(q, k, v, log_decay, state):
    """Return (out of q's dtype, new_state float32); float32 inside, float64 for float64."""
    wide = torch.promote_types(q.dtype, torch.float32)
    decay, carried, rows = torch.exp(log_decay.to(wide)).reshape(-1, 1, 1), state.to(wide), []
    for t in range(q.shape[2]):
        carried = carried * decay + k[:, :, t].to(wide).unsqueeze(-1) * v[:, :, t].to(wide).unsqueeze(-2)
        rows.append(torch.matmul(q[:, :, t].to(wide).unsqueeze(-2), carried))
    return (torch.cat(rows, dim=2) / math.sqrt(q.shape[-1])).to(q.dtype), carried


def independent(q, k, v, log_decay, state):
    """The closed form, a masked product."""
    tokens, width = q.shape[2], q.shape[3]
    steps = torch.arange(tokens, dtype=q.dtype)
    rate = log_decay.to(q.dtype).reshape(-1, 1, 1)
    weights = torch.matmul(q, k.transpose(-1, -2)) * torch.exp((steps.unsqueeze(1) - steps.unsqueeze(0)) * rate).tril()
    out = torch.matmul(weights, v) + torch.exp((steps + 1).reshape(-1, 1) * rate) * torch.matmul(q, state)
    left = torch.exp((tokens - 1 - steps).reshape(-1, 1) * rate)
    return out / width**0.5, torch.matmul((k * left).transpose(-1, -2), v) + torch.exp(tokens * rate) * state
