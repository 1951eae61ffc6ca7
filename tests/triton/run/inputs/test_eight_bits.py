"""Inputs that are floats of 8 bits, which PyTorch neither compares nor adds: they are moved as float32, and come back."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.triton import lab

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("begin", "status"), [("tl.max(x, 0)", "PASS"), ("0.0", "FAIL")])
def test_inputs_of_eight_bits_are_moved_too(begin: str, status: str, place: Path) -> None:
    """PyTorch compares no floats of 8 bits, so the judge took its own failure for the reference's."""
    task = lab.task("return torch.softmax(x.float(), -1)", "[torch.randn(8, 100).to(torch.float8_e4m3fn)]")
    kernels = f"""
        @triton.jit
        def softmax(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
            i = tl.arange(0, BLOCK)
            at = tl.program_id(0) * n + i
            x = tl.load(x_ptr + at, mask=i < n, other=0.0).to(tl.float32)
            x = tl.where(i < n, x, -float("inf"))
            e = tl.exp(x - {begin})
            tl.store(out_ptr + at, e / tl.sum(e, 0), mask=i < n)
    """
    forward = "out = torch.empty(x.shape, device=x.device)\nsoftmax[(len(x),)](x, out, x.shape[1], BLOCK=128)\nreturn out"
    result = lab.verify(lab.folder(place, task, lab.impl(forward, kernels=kernels)))
    assert result["status"] == status, result["failures"] or result["caveats"]
    assert not any("reference failed" in line for line in result["caveats"])


CODES = """
    @triton.jit
    def codes(x_ptr, out_ptr, scale_ptr, n, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        row = tl.program_id(0)
        x = tl.load(x_ptr + row * n + i, mask=i < n, other=0.0)
        e = tl.exp(x - GREATEST)
        scale = tl.max(tl.where(i < n, e, 0.0), 0) / 448.0
        tl.store(out_ptr + row * n + i, (e / scale).to(tl.float8e4nv), mask=i < n)
        tl.store(scale_ptr + row, scale / tl.sum(tl.where(i < n, e, 0.0), 0))
"""
MADE = """
    out = torch.empty(x.shape, dtype=torch.float8_e4m3fn, device=x.device)
    scale = torch.empty(len(x), device=x.device)
    codes[(len(x),)](x, out, scale, x.shape[1], BLOCK=128)
    return out, scale
"""


@pytest.mark.parametrize(("greatest", "status"), [("tl.max(tl.where(i < n, x, -float('inf')), 0)", "PASS"), ("0.0", "FAIL")])
def test_outputs_of_eight_bits_are_judged(greatest: str, status: str, place: Path) -> None:
    """PyTorch does not say of such which are finite: the judge failed by itself, and took moved inputs for unfit ones."""
    lines = "p = torch.softmax(x, -1)\nscale = p.amax(-1) / 448.0\nreturn (p / scale[:, None]).to(torch.float8_e4m3fn), scale"
    task = lab.task(lines, "[torch.randn(8, 100)]")
    result = lab.verify(lab.folder(place, task, lab.impl(MADE, kernels=CODES.replace("GREATEST", greatest))))
    assert result["status"] == status, result["failures"] or result["caveats"]
