"""Hidden golden: gelu(x w + bias), the tanh form."""

import math

import torch


def matmul_gelu_fast_golden(x, w, bias):
    """Return gelu(x @ w + bias); float32 inside, float64 for float64."""
    wide = torch.promote_types(x.dtype, torch.float32)
    z = torch.matmul(x.to(wide), w.to(wide)) + bias.to(wide)
    return (z * torch.sigmoid(2.0 * math.sqrt(2.0 / math.pi) * (z + 0.044715 * z * z * z))).to(x.dtype)


def independent(x, w, bias):
    """The same by torch's own function."""
    return torch.nn.functional.gelu(torch.addmm(bias, x, w), approximate="tanh")
