# Derived from eval/module_interfaces.yaml; do not hand-edit.
# Generated during Phase M2 scaffolding.
import torch


def demo_module12_golden(x, y):
    """x, y: [N, D]. Returns (x * x + y,)."""
    return (torch.square(x) + y,)
