"""Hidden golden: a feed-forward block with its norm and its residual."""

import torch


def gated_mlp_norm_golden(x, weight, wg, wu, wd, eps):
    """Return x + (silu(n wg) * (n wu)) wd with n the RMSNorm of x; float32 inside, float64 for float64."""
    wide = torch.promote_types(x.dtype, torch.float32)
    values = x.to(wide)
    n = values * torch.rsqrt((values * values).mean(-1, keepdim=True) + eps) * weight.to(wide)
    gate = torch.matmul(n, wg.to(wide))
    h = gate * torch.sigmoid(gate) * torch.matmul(n, wu.to(wide))
    return (values + torch.matmul(h, wd.to(wide))).to(x.dtype)


def independent(x, weight, wg, wu, wd, eps):
    """The same by torch's own functions."""
    functional = torch.nn.functional
    n = functional.rms_norm(x, (x.shape[-1],), weight, eps)
    return x + functional.linear(functional.silu(functional.linear(n, wg.T)) * functional.linear(n, wu.T), wd.T)
