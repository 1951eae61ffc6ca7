"""A wrapper that calls itself with a tensor of another shape hands on what its other paths do."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.triton import lab

from pypto_op.triton.static.policy import load_policy
from pypto_op.triton.static.validate import read_file

KERNEL = """
@triton.jit
def summed(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    at = tl.program_id(0) * n + i
    tl.store(out_ptr + at, tl.cumsum(tl.load(x_ptr + at, mask=i < n, other=0.0), 0), mask=i < n)


def along(x, dim=-1):
    FIRST
    x = x.contiguous()
    out = torch.empty_like(x)
    summed[(x.shape[0],)](x, out, x.shape[1], BLOCK=64)
    return out
"""


@pytest.mark.parametrize(
    ("first", "right"),
    [
        ("if x.dim() != 2:\n        return along(x.reshape(-1, x.shape[-1])).reshape(x.shape)", True),
        ("if x.dim() != 2: return along(x.reshape(-1, x.shape[-1])).reshape(x.shape)", True),
        ("if dim == 0:\n        return along(x.t(), 1).t()\n    elif dim != 1:\n        return along(x, dim % 2)", True),
        ("if dim < 0:\n        found = along(x, dim + 2)\n        return found", True),
        ("if dim < 0:\n        return along(x, dim + 2) if x.dim() == 2 else along(x[None], dim)[0]", True),
        ("return along(x, 1)", False),
        ("if dim < 0:\n        return x if x.dim() == 1 else along(x, dim + 2)", False),
        ("if dim == 7:\n        return torch.cumsum(x, 1)\n    if dim < 0:\n        return along(x, 7)", False),
        ("if dim < 0:\n        along(x, dim + 2)\n        return x", False),
    ],
)
def test_what_a_function_that_calls_itself_returns(first: str, right: bool, tmp_path: Path) -> None:
    (tmp_path / "impl.py").write_text(lab.impl("return along(x)", kernels=KERNEL.replace("FIRST", first)), encoding="utf-8")
    assert read_file(tmp_path / "impl.py", load_policy(None)).result["valid"] is right


@pytest.mark.parametrize(
    "lines", ["endless = lambda n: endless(n - 1)\nx = endless(3)", "def f(n):\n    return f(n - 1)\n\n\nx = f(3)"]
)
def test_a_recursion_at_import_ends_in_a_verdict(lines: str, tmp_path: Path) -> None:
    text = lab.impl("return along(x)", kernels=KERNEL.replace("FIRST", "pass") + "\n\n" + lines)
    (tmp_path / "impl.py").write_text(text, encoding="utf-8")
    assert isinstance(read_file(tmp_path / "impl.py", load_policy(None)).result["valid"], bool)


@pytest.mark.slow
def test_a_kernel_behind_a_function_that_calls_itself_passes(place: Path) -> None:
    first = "if dim == 0:\n        return along(x.t(), 1).t()"
    task = lab.task("return x.cumsum(0)", "[torch.randn(40, 6)]")
    result = lab.verify(lab.folder(place, task, lab.impl("return along(x, 0)", kernels=KERNEL.replace("FIRST", first))))
    assert result["status"] == "PASS", result["failures"]
