"""Torch reference of op.

Golden function inventory (every operation, in order; T rows, H columns)
 1. widen x        [T, H] dtype   -> [T, H] float32 (float64 stays)
 2. scale          [T, H]         -> [T, H]
 3. narrow         [T, H] float32 -> [T, H] dtype
"""

import torch


def op_golden(x, gain):
    """Return gain * x.

    x: [T, H] float32, float16, bfloat16 or float64. gain: float > 0.
    Returns [T, H] of x's dtype. Source of the formula: name it.
    """
    wide = torch.promote_types(x.dtype, torch.float32)
    y_wide = x.to(wide) * gain  # [T, H]
    return y_wide.to(x.dtype)


def _make_inputs(dtype=torch.float32, rows=33, width=1040, seed=42):
    """Return (x, gain) of a ragged shape on the CPU."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn((rows, width), generator=generator).to(dtype), 1.5


def _validate():
    """Check against an independent source: here the formula, element by element, in float64."""
    for rows, width in ((1, 16), (17, 48), (33, 1040)):
        for dtype, tolerance in ((torch.float32, 1e-6), (torch.float16, 1e-3), (torch.bfloat16, 8e-3)):
            x, gain = _make_inputs(dtype, rows, width)
            reference = torch.tensor([[gain * v for v in row] for row in x.double().tolist()], dtype=torch.float64)
            ours = op_golden(x, gain).double()
            # torch.testing.assert_close loads half of torch for this, at each check of the golden.
            assert ours.shape == reference.shape and torch.allclose(ours, reference, rtol=tolerance, atol=tolerance), (rows, dtype)


if __name__ == "__main__":
    _validate()
    print("op_golden agrees with the formula in float64")
