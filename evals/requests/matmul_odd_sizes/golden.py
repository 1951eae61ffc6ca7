"""Hidden golden: a product of matrices."""

import torch


def matmul_odd_sizes_golden(x, w):
    """Return x @ w; float32, float64 for float64."""
    return torch.matmul(x, w)


def independent(x, w):
    """The same as a sum of outer products."""
    return sum(torch.outer(x[:, k], w[k]) for k in range(x.shape[1]))
