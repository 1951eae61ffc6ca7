"""Hidden golden: one step of a state-space layer."""

import torch


def state_step_golden(state, x, dt, a, b, c):
    """Return (y [B, N, 1], new_state [B, N, S]); float32, float64 for float64."""
    new_state = state * torch.exp(dt * a) + dt * x * b
    return (new_state * c).sum(-1, keepdim=True), new_state


def independent(state, x, dt, a, b, c):
    """The same with products of matrices."""
    new_state = torch.addcmul(torch.einsum("bni,bis->bns", dt * x, b), state, torch.exp(torch.einsum("bni,ns->bns", dt, a)))
    return torch.matmul(new_state, c.transpose(-1, -2)), new_state
