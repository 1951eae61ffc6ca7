"""Hidden golden: a running sum with a carry."""

import torch


def half_cumsum_golden(x, carry_in):
    """Return (out [T, H] of x's dtype, carry_out [1, H] float32); float32 inside, float64 for float64."""
    wide = torch.promote_types(x.dtype, torch.float32)
    sums = torch.cumsum(x.to(wide), dim=0) + carry_in.to(wide)
    return sums.to(x.dtype), sums[-1:]


def independent(x, carry_in):
    """The same as a product with a triangle of ones."""
    sums = torch.ones((x.shape[0], x.shape[0]), dtype=x.dtype).tril() @ x + carry_in
    return sums, sums[-1:]
