"""What a golden subtracts and reduces is found in its source; sizes and indices are no tensors."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from pypto_op.documents.golden_scan import has_loops, scan, shares
from pypto_op.errors import ContractError
from pypto_op.generators.operator.contractions import summed_axes

GOLDEN = '''
import math
import torch

def _centre(x):
    return x - x.mean(-1, keepdim=True)

def f_golden(q, k, v, lse):
    """q - k in words is no subtraction."""
    n = q.shape[0]
    half = n - 1
    rows = len(q) - half
    scale = math.sqrt(q.shape[-1]) - 1.0
    p = torch.exp(q @ k - lse)
    p -= v
    for i in range(n - 1):
        last = i - 1
    return _centre(p) * scale + v[: n - 1], half - rows, last
'''


def test_only_tensors_are_subtracted(tmp_path: Path) -> None:
    path = tmp_path / "f_golden.py"
    path.write_text(GOLDEN)
    found = scan(path, "f_golden")
    assert {s.expression: s.inputs for s in found.subtractions} == {
        "q @ k - lse": ("k", "lse", "q"),
        "p - v": ("k", "lse", "q", "v"),
        "x - x.mean(-1, keepdim=True)": (),
    }


@pytest.mark.parametrize(
    ("expression", "subtracts"),
    [
        ("x - y", True),
        ("torch.sub(x, y)", True),
        ("x.var(-1)", True),
        ("torch.var_mean(x, -1)[0]", True),
        ("torch.std_mean(x, dim=-1)", True),
        ("torch.addcmul(x, x, y, value=-1)", True),
        ("torch.addcmul(x, x, y, value=2)", False),
        ("x.add(y, alpha=-0.5)", True),
        ("torch.add(x, y)", False),
        ("torch.nn.functional.mse_loss(x, y)", True),
        ("x.lerp(y, 0.5)", True),
        ("torch.nn.functional.layer_norm(x, [8])", True),
        ("x - 1.0", False),
        ("1.0 - x", False),
        ("x * (x.shape[0] - 1)", False),
        ("x[: x.size(0) - 1]", False),
        ("x + (-y)", False),
        ("x * (min(x.shape[0], 4) - len(y))", False),
    ],
)
def test_forms(tmp_path: Path, expression: str, subtracts: bool) -> None:
    path = tmp_path / "f_golden.py"
    path.write_text(f"import torch\n\n\ndef f_golden(x, y):\n    return {expression}\n")
    assert bool(scan(path, "f_golden").subtractions) is subtracts


@pytest.mark.parametrize(("text", "words"), [("def f_golden(:\n", "not valid Python"), ("x = 1\n", "has no function f_golden")])
def test_a_broken_golden_is_named(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "f_golden.py"
    path.write_text(text)
    with pytest.raises(ContractError, match=words):
        scan(path, "f_golden")


@pytest.mark.parametrize(
    ("body", "weights"),
    [
        ("return x @ w", {"w": 0}),
        ("wide = w.float()\n    h = torch.matmul(x.float(), wide)\n    return h * torch.exp(x)", {"w": 0}),
        ("w = w.to(torch.float32)\n    return x.matmul(w).to(x.dtype)", {"w": 0}),
        ("return x @ w.t()", {"w": 1}),
        ("return x @ w.transpose(0, 1).float()", {"w": 1}),
        ("n = w.shape[1]\n    return torch.nn.functional.linear(x, w, b) * n", {}),
        ("return torch.nn.functional.linear(x, w, b) + w.shape[1]", {"w": 1}),
        ("return torch.addmm(b, x, w)", {"w": 0}),
        ("return torch.einsum('tk,nk->tn', x, w)", {"w": 1}),
        ("return torch.einsum('tk,nk->tnk', x, w)", {}),
        ("p = torch.softmax(x, -1)\n    return p @ w", {}),
        ("return (x @ w) * scale", {}),
        ("s = x @ w\n    return s / w.shape[0] ** 0.5", {}),
        ("return x @ w + w", {}),
        ("return x @ w @ w.T", {}),
        ("return x @ (w * 2.0)", {}),
        ("return x * w", {}),
    ],
)
def test_weights_are_inputs_that_products_only_ever_sum_over(body: str, weights: dict[str, int]) -> None:
    function = ast.parse(f"def f_golden(x, w, b, scale):\n    {body}\n").body[0]
    assert isinstance(function, ast.FunctionDef)
    found = summed_axes(function, {"x": 2, "w": 2, "b": 1})
    assert found == weights


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("return beta * x + (1.0 - beta) * y", {"beta"}),
        ("rest = 1 - beta\n    return beta * x + rest * y", {"beta"}),
        ("return torch.lerp(x, y, beta)", {"x", "y", "beta"}),
        ("return x.lerp(y, weight=beta)", {"y", "beta"}),
        ("return x * (1.0 - decay * beta)", set()),
        ("return x - beta + (2.0 - beta) * (beta - 1.0)", set()),
    ],
)
def test_what_a_golden_may_mix_by_is_what_it_takes_from_1(tmp_path: Path, body: str, found: set[str]) -> None:
    path = tmp_path / "f_golden.py"
    path.write_text(f"import torch\n\n\ndef f_golden(x, y, beta, decay):\n    {body}\n")
    assert shares(path, "f_golden") == found


def test_what_a_flag_chooses_is_no_share(tmp_path: Path) -> None:
    """A focal loss with `alpha or 0.25` passed: alpha of 0 was not tried, since its golden mixes nothing but writes 1 - alpha."""
    path = tmp_path / "f_golden.py"
    path.write_text("def f_golden(x, flag, a, b):\n    return torch.where(flag, a, 1.0 - a) * x + (1.0 - b) * x\n")
    assert shares(path, "f_golden") == {"b"}


@pytest.mark.parametrize(
    ("loop", "walks"),
    [
        ("for _ in range(iters - 1):", False),
        ("for k in range(3):", False),
        ("for word in (x, x + 1):", False),
        ("for t in range(x.shape[0]):", True),
        ("for t in range(4096):", True),
        ("for t in range(far):", True),
        ("for t in range(moved):", True),
        ("for t in range(iters * 50):", True),
        ("while x.sum() > 1:", True),
    ],
)
def test_a_loop_of_few_steps_walks_no_axis(loop: str, walks: bool, tmp_path: Path) -> None:
    """Where a golden walks tokens a verdict draws no long axis; 20 steps of an iteration are no reason for that."""
    path = tmp_path / "f_golden.py"
    head = "def f_golden(x, iters=20, far=4096, moved=3):\n    moved = len(x)\n    iters_left = iters\n"
    path.write_text(f"{head}    {loop}\n        x = x / x.sum()\n    return x\n")
    assert has_loops(path, "f_golden") is walks
