"""What a kernel may read of its module: the interpreter takes anything, the compiler only what it knows by then."""

from __future__ import annotations

from pathlib import Path

import pytest

from pypto_op.triton.static.validate import validate_file

READS = "y = tl.load(x_ptr + i, mask=i < n) + LIMIT"


def implementation(declared: str, body: str = READS, parameter: str = "BLOCK: tl.constexpr") -> str:
    return f"""import math
import torch
import torch.nn as nn
import triton
import triton.language as tl
{declared}


@triton.jit
def helper(y):
    return y


@triton.jit
def kernel(x_ptr, out_ptr, n, {parameter}):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    {body}
    tl.store(out_ptr + i, y, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
        return out
"""


@pytest.mark.parametrize(
    "declared",
    [
        "LIMIT = 3.0",
        "LIMIT = -1e30",
        "TWO = 2\nLIMIT = TWO * 3 + 1",
        "LIMIT = math.sqrt(2 / math.pi)",
        'LIMIT = -float("inf")',
        "LIMIT = True",
    ],
)
def test_a_plain_value_of_the_module_is_refused(declared: str, tmp_path: Path) -> None:
    path = tmp_path / "softmax_triton_ascend_impl.py"
    path.write_text(implementation(declared), encoding="utf-8")
    result = validate_file(path)
    [said] = [denied["reason"] for denied in result["checks"]["no_forbidden_torch_ops"]["violations"]]
    assert not result["valid"] and "reads `LIMIT` of the module, which Triton's compiler refuses" in said


@pytest.mark.parametrize(
    ("declared", "changes"),
    [
        ("LIMIT = tl.constexpr(3.0)", {}),
        ("LIMIT: tl.constexpr = 3.0", {}),
        ("LIMIT = tl.constexpr(2) * 3", {}),
        ("LIMIT = 64", {"body": "y = tl.load(x_ptr + i, mask=i < n)", "parameter": "BLOCK: tl.constexpr = LIMIT"}),
        ("LIMIT = 64", {"body": "LIMIT = 2.0\n    y = tl.load(x_ptr + i, mask=i < n) * LIMIT"}),
        ("other = 1\ndtype = 1", {"body": "y = tl.load(x_ptr + i, mask=i < n, other=0.0) + tl.zeros((64,), dtype=tl.float32)"}),
        ("LIMIT = tl.float32", {"body": "y = tl.load(x_ptr + i, mask=i < n).to(LIMIT)"}),
        ("LIMIT = 3", {"body": "y = tl.load(x_ptr + i, mask=i < n)\n    if False:\n        y += LIMIT"}),
        ("try:\n    LIMIT = tl.constexpr(3)\nexcept AttributeError:\n    LIMIT = 3", {}),
    ],
    ids=["constexpr", "annotated", "computed", "default", "local", "keywords", "dtype", "never runs", "either"],
)  # fmt: skip
def test_what_the_compiler_takes_is_accepted(declared: str, changes: dict[str, str], tmp_path: Path) -> None:
    path = tmp_path / "softmax_triton_ascend_impl.py"
    path.write_text(implementation(declared, **changes), encoding="utf-8")
    result = validate_file(path)
    assert result["valid"], result["checks"]
