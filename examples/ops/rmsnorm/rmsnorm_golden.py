"""Torch reference of rmsnorm.

Golden function inventory (every operation, in order; T tokens, H hidden size)
 1. widen x        [T, H] dtype     -> [T, H] float32 (float64 stays)
 2. square         [T, H]           -> [T, H]
 3. mean over H    [T, H]           -> [T, 1]
 4. add eps        [T, 1]           -> [T, 1]
 5. rsqrt          [T, 1]           -> [T, 1]
 6. scale rows     [T, H] * [T, 1]  -> [T, H]
 7. widen weight   [H] dtype        -> [H] float32 (float64 stays)
 8. scale columns  [T, H] * [H]     -> [T, H]
 9. narrow         [T, H] float32   -> [T, H] dtype
"""

import torch


def rmsnorm_golden(x, weight, eps):
    """Return x * weight / sqrt(mean(x^2) + eps) over the last axis.

    x: [T, H] float32, float16, bfloat16 or float64. weight: [H], dtype of x. eps: float > 0.
    Returns [T, H] of x's dtype. Accumulates in float32, in float64 for float64 inputs.
    Source of the formula: Zhang and Sennrich, "Root Mean Square Layer Normalization", 2019.
    """
    wide = torch.promote_types(x.dtype, torch.float32)
    x_wide = x.to(wide)  # [T, H]
    mean_square = (x_wide * x_wide).mean(dim=-1, keepdim=True)  # [T, 1]
    inverse_rms = torch.rsqrt(mean_square + eps)  # [T, 1]
    y_wide = x_wide * inverse_rms * weight.to(wide)  # [T, H]
    return y_wide.to(x.dtype)


def _make_inputs(dtype=torch.float32, tokens=33, hidden=1040, seed=42):
    """Return (x, weight, eps) of a ragged shape on the CPU."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn((tokens, hidden), generator=generator).to(dtype)
    weight = torch.randn((hidden,), generator=generator).to(dtype)
    return x, weight, 1e-6


def _validate():
    """Check the golden against torch's own operator, in three shapes and three dtypes."""
    for tokens, hidden in ((1, 16), (17, 528), (33, 1040)):
        for dtype, tolerance in ((torch.float32, 1e-5), (torch.float16, 2e-3), (torch.bfloat16, 2e-2)):
            x, weight, eps = _make_inputs(dtype, tokens, hidden)
            reference = torch.nn.functional.rms_norm(x.double(), (hidden,), weight.double(), eps)
            ours = rmsnorm_golden(x, weight, eps).double()
            assert ours.shape == reference.shape and torch.allclose(ours, reference, rtol=tolerance, atol=tolerance), (tokens, dtype)


if __name__ == "__main__":
    _validate()
    print("rmsnorm_golden agrees with torch.nn.functional.rms_norm")
