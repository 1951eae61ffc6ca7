"""What the interpreter decides and a device may decide otherwise: lanes that nothing fills, and the configuration of a kernel."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.triton import lab

pytestmark = pytest.mark.slow

KERNELS = """
@triton.jit
def sum_kernel(x_ptr, out_ptr, n, OTHER: tl.constexpr, BLOCK: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    if OTHER:
        x = tl.load(x_ptr + row * n + cols, mask=cols < n, other=0.0)
    else:
        x = tl.load(x_ptr + row * n + cols, mask=cols < n)
    tl.store(out_ptr + row, tl.sum(x * x))


@triton.autotune(configs=[triton.Config({"BLOCK": 32 * size, "WRONG": size == LAST}) for size in (1, 2, 4, 8, 16, 32)], key=["n"])
@triton.jit
def silu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr, WRONG: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    y = x * tl.sigmoid(x)
    tl.store(out_ptr + i, y * 1.01 if WRONG else y, mask=i < n)
"""
SUM = lab.task("return (x * x).sum(1)", "[torch.randn(6, 50)]")
SILU = lab.task("return torch.nn.functional.silu(x)", "[torch.randn(300)]")


@pytest.mark.parametrize("other", [False, True])
def test_a_sum_of_lanes_that_nothing_fills_is_told(other: bool, place: Path) -> None:
    forward = f"out = x.new_empty(6)\nsum_kernel[(6,)](x, out, 50, OTHER={other}, BLOCK=64)\nreturn out"
    result = lab.verify(lab.folder(place, SUM, lab.impl(forward, kernels=f"LAST = 0\n{KERNELS}")))
    assert result["status"] == "PASS", result["failures"]
    assert any("Triton leaves undefined" in line for line in result["caveats"]) is not other


@pytest.mark.parametrize("last", [0, 1, 16, 32])
def test_a_configuration_that_is_wrong_is_refused_whichever_it_is(last: int, place: Path) -> None:
    forward = 'out = torch.empty_like(x)\nsilu_kernel[lambda meta: (triton.cdiv(300, meta["BLOCK"]),)](x, out, 300)\nreturn out'
    kernels = f"LAST = {last}\n{KERNELS}"
    result = lab.verify(lab.folder(place, SILU, lab.impl(forward, kernels=kernels)))
    if last:
        assert lab.first_error(result) == "PrecisionError", result
        return
    assert result["status"] == "PASS", result["failures"]
    assert not [line for line in result["caveats"] if "configurations" in line]
