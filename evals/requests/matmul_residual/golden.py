"""Hidden golden: a product with bias and residual, rounded once."""

import torch


def matmul_residual_golden(x, w, bias, residual):
    """Return x @ w + bias + residual; float32 inside, float64 for float64."""
    wide = torch.promote_types(x.dtype, torch.float32)
    return (torch.matmul(x.to(wide), w.to(wide)) + bias.to(wide) + residual.to(wide)).to(x.dtype)


def independent(x, w, bias, residual):
    """The same as a sum over k of products."""
    return torch.einsum("mk,kn->mn", x, w).add(residual).add(bias)
