"""Golden of M1 and M2."""
import torch


def demo_module12_golden(x, y):
    """x, y: [N, D]. Returns (x * x + y,)."""
    return (torch.square(x) + y,)


# Derived from module_interfaces.yaml — do not hand-edit. On YAML changes, regenerate.
# generated during Phase M2 scaffolding; do not hand-edit below the header
