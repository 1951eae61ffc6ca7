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
