"""Hidden golden: RMSNorm over the last axis."""

import torch


def rmsnorm_golden(x, weight, eps):
    """Return x * weight / sqrt(mean(x^2) + eps); x [T, H], weight [H]; float32 inside, float64 for float64."""
    wide = torch.promote_types(x.dtype, torch.float32)
    values = x.to(wide)
    return (values * torch.rsqrt((values * values).mean(-1, keepdim=True) + eps) * weight.to(wide)).to(x.dtype)


def independent(x, weight, eps):
    """The same by torch's own function."""
    return torch.nn.functional.rms_norm(x, (x.shape[-1],), weight, eps)
