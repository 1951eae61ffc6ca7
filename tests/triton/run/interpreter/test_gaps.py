"""What the interpreter does otherwise than Triton's compiler is mended: right kernels pass."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.triton import lab

KERNEL = """
from triton.language.extra import libdevice

HALF = tl.constexpr(0.5)


@triton.jit
def mixed_kernel(x_ptr, out_ptr, n, factor, wanted, unwanted, BLOCK: "'tl.constexpr'"):
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0)
    rounded = libdevice.llrint(x * factor.to(tl.float32)).to(tl.float32)
    positive = (x > 0) and mask
    far = (x > 1) or (x < -1)
    near = not (x > 1) and not (x < -1)
    if wanted and not n > BLOCK:
        found = tl.where(positive, rounded, 0.0) + tl.where(far, HALF * x + x * HALF, 0.0) + tl.where(near, 1.0, 0.0)
        tl.store(out_ptr + offsets, tl.where(unwanted, 0.0, found), mask=mask & wanted)
"""


@pytest.mark.slow
def test_a_kernel_that_the_compiler_takes_runs(place: Path) -> None:
    reference = "return torch.where(x > 0, torch.round(x * 2.5), 0.0) + torch.where(x.abs() > 1, x, 1.0)"
    task = lab.task(reference, "[torch.randn(61)]")
    forward = "out = torch.empty_like(x)\nmixed_kernel[(1,)](x, out, 61, 2.5, x is not None, x is None, BLOCK=64)\nreturn out"

    result = lab.verify(lab.folder(place, task, lab.impl(forward, kernels=KERNEL)))

    assert result["status"] == "PASS", result["failures"]
