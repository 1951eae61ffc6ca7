"""Torch reference of matmul_bias_gelu.

Golden function inventory (every operation, in order; M tokens, K inner size, N width)
 1. widen x, w, bias  [M, K], [K, N], [N] dtype -> float32 (float64 stays)
 2. matmul x w        [M, K] x [K, N]           -> [M, N]
 3. add bias          [M, N] + [N]              -> [M, N]
 4. square            [M, N]                    -> [M, N]
 5. cubic factor      0.044715 z^2 + 1          -> [M, N]
 6. cubic             z (0.044715 z^2 + 1)      -> [M, N]
 7. sigmoid           of 2 sqrt(2/pi) cubic     -> [M, N]
 8. gate              z sigmoid                 -> [M, N]
 9. narrow            [M, N] float32            -> [M, N] dtype
"""

import math

import torch


def matmul_bias_gelu_golden(x, w, bias):
    """Return gelu(x w + bias), GELU in its tanh form.

    x: [M, K]. w: [K, N]. bias: [N]. float32, float16, bfloat16 or float64. Returns [M, N] of x's dtype.
    Accumulates in float32, in float64 for float64 inputs.
    Source of the formula: Hendrycks and Gimpel, "Gaussian Error Linear Units", 2016, section 2. It is written
    with sigmoid, since (1 + tanh(u)) / 2 = sigmoid(2u): 1 + tanh(u) cancels for negative u.
    """
    wide = torch.promote_types(x.dtype, torch.float32)
    z = torch.matmul(x.to(wide), w.to(wide)) + bias.to(wide)  # [M, N]
    cubic = z * (0.044715 * z * z + 1.0)  # [M, N]
    gate = torch.sigmoid(2.0 * math.sqrt(2.0 / math.pi) * cubic)  # [M, N]
    return (z * gate).to(x.dtype)


def _make_inputs(dtype=torch.float32, tokens=129, inner=144, width=272, seed=42):
    """Return (x, w, bias) of a ragged shape on the CPU; z is about standard normal."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn((tokens, inner), generator=generator)
    w = torch.randn((inner, width), generator=generator) / inner**0.5
    bias = torch.randn((width,), generator=generator)
    return x.to(dtype), w.to(dtype), bias.to(dtype)


def _validate():
    """Check the golden against torch's own operators, in three shapes and three dtypes; raise AssertionError."""
    for tokens, inner, width in ((1, 16, 16), (129, 144, 272), (64, 512, 128)):
        for dtype, tolerance in ((torch.float32, 1e-5), (torch.float16, 1e-3), (torch.bfloat16, 1e-2)):
            x, w, bias = _make_inputs(dtype, tokens, inner, width)
            z = torch.nn.functional.linear(x.double(), w.double().transpose(0, 1), bias.double())
            reference = torch.nn.functional.gelu(z, approximate="tanh")
            out = matmul_bias_gelu_golden(x, w, bias)
            torch.testing.assert_close(out.double(), reference, rtol=tolerance, atol=tolerance)


if __name__ == "__main__":
    _validate()
    print("matmul_bias_gelu_golden agrees with torch's linear and gelu")
