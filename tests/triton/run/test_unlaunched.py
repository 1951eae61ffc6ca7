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


@pytest.mark.parametrize(
    "condition", ["triton.knobs.runtime.interpret", 'type(exp_kernel).__name__ == "InterpretedFunction"', ""]
)
def test_a_file_that_asks_whether_it_is_interpreted_is_named(condition: str, place: Path) -> None:
    kernels = "@triton.jit\ndef plus(x_ptr, out_ptr, n, ADD: tl.constexpr, BLOCK: tl.constexpr):\n"
    kernels += (
        "    i = tl.arange(0, BLOCK)\n    tl.store(out_ptr + i, tl.exp(tl.load(x_ptr + i, mask=i < n)) + ADD, mask=i < n)\n"
    )
    forward = "out = torch.empty_like(x)\n"
    forward += (
        f"plus[(1,)](x, out, 512, ADD=0.0 if {condition.replace('exp_kernel', 'plus') or 'True'} else 1.0, BLOCK=512)\nreturn out"
    )
    result = lab.verify(lab.folder(place, lab.EXPO, lab.impl(forward, kernels=kernels)))
    assert result["status"] == "PASS", result["failures"]
    assert [line for line in result["caveats"] if "asks whether Triton" in line] == [
        f"the implementation asks whether Triton interprets it ({word}): what it does on a device was not judged"
        for word in ("knobs.runtime.interpret", "InterpretedFunction")
        if word in condition
    ]
