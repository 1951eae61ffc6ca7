"""What the shared facts say about tensors: of torch or of the graph, and whether they carry data."""

from __future__ import annotations

import pytest
from tests.lint.asking_facts import KERNEL, argument_of, facts_of


@pytest.mark.parametrize(
    ("expression", "is_tensor"),
    [
        ("x", True),
        ("n", False),
        ("x.shape", False),
        ("x.shape[0]", False),
        ("x.size(0)", False),
        ("x.reshape(-1)", True),
        ("x * 2", True),
        ("n * 2", False),
        ("x > 0", True),
        ("x is None", False),
        ("torch.empty(3)", True),
        ("torch.finfo(x.dtype)", False),
        ("helper(x)", True),
        ("len(x)", False),
        ("-x", True),
        ("not x", False),
        ("x.T", True),
        ("x.dtype", False),
        ("(x if n else n)", True),
        ("pair[0]", False),
    ],
)
def test_host_tensors_are_told_from_numbers(expression: str, is_tensor: bool) -> None:
    facts = facts_of(
        KERNEL
        + f"""
def helper(t):
    return t.contiguous()

def k_wrapper(x: torch.Tensor, n: int):
    pair = (n, n)
    use({expression})
"""
    )
    assert facts.tensors.on_host(argument_of(facts)) is is_tensor


@pytest.mark.parametrize(
    ("expression", "is_tensor"),
    [
        ("x", True),
        ("n", False),
        ("pypto.exp(x)", True),
        ("x.exp().mul(x)", True),
        ("x.shape", False),
        ("x * 2.0", True),
        ("x[0:4]", True),
        ("x[0]", False),
        ("inner(x)", True),
        ("pypto.min(n, 4)", False),
        ("state", True),
        ("either", False),
    ],
)
def test_graph_tensors_are_told_from_symbols(expression: str, is_tensor: bool) -> None:
    facts = facts_of(
        f"""
        import pypto

        def inner(t):
            return pypto.exp(t)

        @pypto.frontend.jit
        def kernel(x: pypto.Tensor([8, 8], pypto.DT_FP32), n: int):
            state = pypto.tensor([8, 8], pypto.DT_FP32, "state")
            either = x
            if n:
                either = n
            use({expression})
        """
    )
    assert facts.tensors.in_graph(argument_of(facts)) is is_tensor


@pytest.mark.parametrize(
    ("expression", "carries"),
    [
        ("x", True),
        ("out", True),
        ("torch.empty_like(x)", False),
        ("torch.ones(x.shape[0])", False),
        ("torch.triu(torch.ones(n, n), 1)", False),
        ("torch.triu(x)", True),
        ("torch.arange(n) * 0.5", False),
        ("torch.arange(n) * x", True),
        ("x.new_zeros(3) + 1", False),
        ("table(n)", False),
        ("same(x)", True),
    ],
)
def test_data_is_told_from_constants(expression: str, carries: bool) -> None:
    facts = facts_of(
        KERNEL
        + f"""
def table(n):
    return torch.cos(torch.arange(n))

def same(t):
    return t.clone()

def k_wrapper(x: torch.Tensor, n: int):
    out = torch.empty_like(x)
    kernel(x, out)
    use({expression})
"""
    )
    assert facts.data.carries(argument_of(facts)) is carries
