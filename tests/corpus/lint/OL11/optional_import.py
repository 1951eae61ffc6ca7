"""Reference of demo: y = exp(x).

Inventory of operations:
    1. exp    [T, 64] -> [T, 64]
"""
try:
    import demo_missing_module
except ImportError:
    demo_missing_module = None


def demo_golden(x):
    """exp of every element, in fp32."""
    y = x.float().exp()  # [T, 64]
    return y.to(x.dtype)
