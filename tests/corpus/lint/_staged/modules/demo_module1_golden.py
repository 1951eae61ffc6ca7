# Derived from module_interfaces.yaml - do not hand-edit. On YAML changes, regenerate.
# generated during Phase M1 scaffolding; do not hand-edit below the header
"""Reference of demo: e = exp(x) * w.

Inventory of operations:
    1. exp    [T, 64] -> [T, 64]
    2. mul    [T, 64], [1, 64] -> [T, 64]
"""
import torch


def demo_module1_golden(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Scaled exp, in fp32."""
    wide = x.to(torch.float32)  # [T, 64]
    e = torch.exp(wide) * w  # [T, 64]
    return e.to(x.dtype)


def _make_inputs(rows=16, seed=42):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(rows, 64, generator=generator)


def _validate():
    for rows in (1, 16, 45):
        x = _make_inputs(rows)
        w = torch.ones(1, 64)
        torch.testing.assert_close(demo_module1_golden(x, w), x.exp())


if __name__ == "__main__":
    _validate()
