"""Hidden golden: sums over tokens, accumulated in float32."""

import torch


def half_sum_columns_golden(grad):
    """Return [1, H], the sums of the columns of grad [T, H], rounded once."""
    wide = torch.promote_types(grad.dtype, torch.float32)
    return grad.to(wide).sum(0, keepdim=True).to(grad.dtype)


def independent(grad):
    """The same as a product with ones."""
    return torch.ones((1, grad.shape[0]), dtype=grad.dtype) @ grad
