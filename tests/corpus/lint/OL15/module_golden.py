# Derived from module_interfaces.yaml - do not hand-edit. On YAML changes, regenerate.
# generated during Phase M2 scaffolding; do not hand-edit below the header
"""Reference of demo: y = exp(x).

Inventory of operations:
    1. exp    [T, 64] -> [T, 64]
"""
import torch


def demo_module12_golden(x: torch.Tensor) -> torch.Tensor:
    """exp of every element, in fp32."""
    wide = x.to(torch.float32)  # [T, 64]
    y = torch.exp(wide)  # [T, 64]
    return y.to(x.dtype)


def _make_inputs(rows=16, seed=42):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(rows, 64, generator=generator)


def _validate():
    for rows in (1, 16, 45):
        x = _make_inputs(rows)
        torch.testing.assert_close(demo_module12_golden(x), x.exp())


if __name__ == "__main__":
    _validate()
