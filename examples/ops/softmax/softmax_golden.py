"""Torch reference of softmax.

Golden function inventory (every operation, in order; R rows, C columns)
 1. widen x         [R, C] dtype     -> [R, C] float32 (float64 stays)
 2. row maximum     [R, C]           -> [R, 1]
 3. floor at lowest [R, 1]           -> [R, 1]   (a row of nothing but -inf is 0/0 = NaN, as in torch)
 4. subtract        [R, C] - [R, 1]  -> [R, C]
 5. exp             [R, C]           -> [R, C]
 6. row sum         [R, C]           -> [R, 1]
 7. divide          [R, C] / [R, 1]  -> [R, C]
 8. narrow          [R, C] float32   -> [R, C] dtype
"""

import torch


def softmax_golden(x):
    """Return softmax over the last axis.

    x: [R, C] float32, float16, bfloat16 or float64. Returns [R, C] of x's dtype.
    Accumulates in float32, in float64 for float64 inputs.
    A row that holds NaN or +inf, or nothing but -inf, is NaN.
    """
    wide = torch.promote_types(x.dtype, torch.float32)
    x_wide = x.to(wide)  # [R, C]
    row_max = x_wide.amax(dim=-1, keepdim=True)  # [R, 1]
    row_max = row_max.clamp(min=torch.finfo(wide).min)  # [R, 1]
    shifted_exp = torch.exp(x_wide - row_max)  # [R, C]
    row_sum = shifted_exp.sum(dim=-1, keepdim=True)  # [R, 1]
    return (shifted_exp / row_sum).to(x.dtype)  # [R, C]


def _make_inputs(dtype=torch.float32, rows=17, cols=383, seed=42):
    """Return (x,) of a ragged shape on the CPU."""
    generator = torch.Generator().manual_seed(seed)
    return ((torch.randn((rows, cols), generator=generator) * 4.0).to(dtype),)


def _validate():
    """Check the golden against torch.softmax, in three shapes and three dtypes; raise AssertionError."""
    for rows, cols in ((1, 1), (17, 129), (33, 383)):
        for dtype, tolerance in ((torch.float32, 1e-6), (torch.float16, 1e-3), (torch.bfloat16, 8e-3)):
            (x,) = _make_inputs(dtype, rows, cols)
            x[0, 0] = float("-inf")
            reference = torch.softmax(x.double(), dim=-1)
            ours = softmax_golden(x).double()
            torch.testing.assert_close(ours, reference, rtol=tolerance, atol=tolerance, equal_nan=True)


if __name__ == "__main__":
    _validate()
    print("softmax_golden agrees with torch.softmax")
