"""The trace of a golden: operators are taken apart into what a kernel computes, without changing what they give."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from pypto_op.debug.golden_trace import Trace

_WIDE = 1e-6
_ALLOWED = {torch.float64: 1e-12, torch.float32: _WIDE, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}

POINTWISE: dict[str, tuple[Callable[..., torch.Tensor], str]] = {
    "gelu": (lambda x, y: F.gelu(x), "erf"),
    "gelu_tanh": (lambda x, y: F.gelu(x, approximate="tanh"), "tanh"),
    "silu": (lambda x, y: F.silu(x), "sigmoid"),
    "mish": (lambda x, y: F.mish(x), "log1p"),
    "softplus": (lambda x, y: F.softplus(x), "log1p"),
    "softplus_beta": (lambda x, y: F.softplus(x, beta=3.0, threshold=2.0), "div"),
    "addcmul": (lambda x, y: torch.addcmul(x, x, y), "mul"),
    "addcmul_value": (lambda x, y: torch.addcmul(x, x, y, value=0.25), "mul"),
    "addcdiv": (lambda x, y: torch.addcdiv(x, x, y.abs() + 1, value=2.0), "div"),
    "lerp": (lambda x, y: torch.lerp(x, y, 0.3), "sub"),
    "lerp_tensor": (lambda x, y: torch.lerp(x, y, y.abs()), "sub"),
    "rsub": (lambda x, y: 1 - x, "sub"),
    "hardtanh": (lambda x, y: F.hardtanh(x, -0.5, 0.25), "clamp"),
    "relu6": (lambda x, y: F.relu6(x * 8), "clamp"),
}
SUMS: dict[str, tuple[Callable[..., torch.Tensor], str]] = {
    "softmax": (lambda x, y: x.softmax(-1), "exp"),
    "softmax_first": (lambda x, y: x.softmax(0), "exp"),
    "softmax_masked": (lambda x, y: torch.where(y > 0, x, -torch.inf).softmax(-1).nan_to_num(7.0), "exp"),
    "log_softmax": (lambda x, y: x.log_softmax(1), "log"),
    "logsumexp": (lambda x, y: x.logsumexp(-1), "log"),
    "logsumexp_kept": (lambda x, y: x.logsumexp((0, 1), keepdim=True), "log"),
    "logsumexp_infinite": (lambda x, y: torch.where(x > 0.5, torch.inf, x).logsumexp(1), "log"),
    "logsumexp_of_nothing": (lambda x, y: torch.full_like(x, -torch.inf).logsumexp(1), "log"),
    "dot": (lambda x, y: torch.dot(x[0], y[0]), "sum"),
}


def _traced(function: Callable[..., torch.Tensor], *given: torch.Tensor) -> tuple[torch.Tensor, list[str]]:
    trace = Trace(Path(__file__))
    with trace:
        made = function(*given)
    return made, [row["op"] for row in trace._rows]


@pytest.mark.parametrize("dtype", sorted(_ALLOWED, key=str))
@pytest.mark.parametrize("name", sorted(POINTWISE | SUMS))
def test_what_is_taken_apart_gives_what_torch_gives(name: str, dtype: torch.dtype) -> None:
    function, step = (POINTWISE | SUMS)[name]
    torch.manual_seed(0)
    x, y = torch.randn(5, 9).to(dtype), torch.randn(5, 9).to(dtype)
    made, steps = _traced(function, x, y)
    assert step in steps
    assert name.split("_", maxsplit=1)[0] not in set(steps) - {"exp", "log", "sum"}
    torch.testing.assert_close(made, function(x, y), rtol=_ALLOWED[dtype], atol=_ALLOWED[dtype])


@pytest.mark.parametrize("shape", [(0, 4), (4, 0)])
def test_of_no_elements_nothing_fails(shape: tuple[int, int]) -> None:
    empty = torch.empty(shape)
    for function in (lambda x: x.softmax(-1), lambda x: x.log_softmax(0), lambda x: x.logsumexp(0), F.gelu, F.silu):
        made, _ = _traced(function, empty)
        assert made.equal(function(empty))


def test_neither_sympy_nor_the_compiler_of_torch_is_imported() -> None:
    """They take 0.4 and 1.5 s of a process, which a search for a divergence does not."""
    program = (
        "import sys, torch, torch.nn.functional as F\n"
        "from pathlib import Path\nfrom pypto_op.debug.golden_trace import Trace\n"
        "x = torch.randn(4, 8)\n"
        "with Trace(Path('golden.py')):\n"
        "    x.softmax(-1), x.log_softmax(-1), x.logsumexp(-1), torch.dot(x[0], x[1]), F.gelu(x), F.silu(x), F.mish(x)\n"
        "    F.softplus(x), torch.addcmul(x, x, x), torch.addcdiv(x, x, x), torch.lerp(x, x, 0.5), F.relu6(x), 1 - x, x.var(-1)\n"
        "print({'sympy', 'torch._dynamo'} & set(sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
