"""Hidden golden: LayerNorm, with the variance of centred values."""

import torch


def layernorm_offset_golden(x, weight, bias, eps):
    """Return the LayerNorm of x [T, H] with weight, bias [H]; float32 inside, float64 for float64."""
    wide = torch.promote_types(x.dtype, torch.float32)
    values = x.to(wide)
    centred = values - values.mean(-1, keepdim=True)
    variance = (centred * centred).mean(-1, keepdim=True)
    return (centred * torch.rsqrt(variance + eps) * weight.to(wide) + bias.to(wide)).to(x.dtype)


def independent(x, weight, bias, eps):
    """The same by torch's own function."""
    return torch.nn.functional.layer_norm(x, (x.shape[-1],), weight, bias, eps)
