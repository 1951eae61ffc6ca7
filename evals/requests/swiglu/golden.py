"""Hidden golden: SwiGLU."""

import torch


def swiglu_gate_golden(gate, up):
    """Return silu(gate) * up; both [T, F]; float32 inside, float64 for float64."""
    wide = torch.promote_types(gate.dtype, torch.float32)
    values = gate.to(wide)
    return (values * torch.sigmoid(values) * up.to(wide)).to(gate.dtype)


def independent(gate, up):
    """The same by torch's own function."""
    return torch.nn.functional.silu(gate) * up
