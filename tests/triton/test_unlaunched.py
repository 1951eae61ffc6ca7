"""A kernel for sizes that no case has is not judged: the verdict names it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.triton import lab

KERNELS = """
@triton.jit
def short_rows(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=0.0)
    tl.store(out_ptr + row, tl.sum(x * x))


@triton.jit
def long_rows(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    tl.store(out_ptr + tl.program_id(0), 0.0)
"""
FORWARD = """
out = x.new_empty(x.shape[0])
if x.shape[1] <= 64:
    short_rows[(x.shape[0],)](x, out, x.shape[1], BLOCK=64)
else:
    long_rows[(x.shape[0],)](x, out, x.shape[1], BLOCK=64)
return out
"""


@pytest.mark.parametrize(("columns", "told"), [(50, "long_rows"), (70, None)])
def test_a_kernel_that_no_case_launches_is_named(columns: int, told: str | None, place: Path) -> None:
    asked = lab.task("return (x * x).sum(1)", f"[torch.randn(6, {columns})]")
    result = lab.verify(lab.folder(place, asked, lab.impl(FORWARD, kernels=KERNELS)))
    assert result["status"] == ("PASS" if told else "FAIL"), result["failures"]
    named = [line for line in result["caveats"] if "no case launches" in line]
    assert [line.split()[3].rstrip(",") for line in named] == ([told] if told else [])


def test_where_every_kernel_ran_nothing_is_said(place: Path) -> None:
    asked = lab.task("return (x * x).sum(1)", "[torch.randn(6, 50)]")
    forward = "out = x.new_empty(6)\nshort_rows[(6,)](x, out, 50, BLOCK=64)\nreturn out"
    result = lab.verify(lab.folder(place, asked, lab.impl(forward, kernels=KERNELS)))
    assert result["status"] == "PASS", result["failures"]
    assert not [line for line in result["caveats"] if "no case launches" in line]
