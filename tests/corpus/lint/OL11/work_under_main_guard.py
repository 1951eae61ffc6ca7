"""Reference of demo: y = exp(x).

Inventory of operations:
    1. exp    [T, 64] -> [T, 64]
"""


def demo_golden(x):
    """exp of every element, in fp32."""
    y = x.float().exp()  # [T, 64]
    return y.to(x.dtype)


def _validate():
    import torch

    x = torch.randn(16, 64, generator=torch.Generator().manual_seed(42))
    torch.testing.assert_close(demo_golden(x), x.exp())


if __name__ == "__main__":
    import sys

    _validate()
    sys.exit(0)
