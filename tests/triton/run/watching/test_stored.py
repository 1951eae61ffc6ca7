"""A launch that leaves PyTorch's copy of an input as it was: what the kernel stored is its own, what it did not store is not."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.triton import lab

RELU = """
@triton.jit
def relu_kernel(x_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(x_ptr + offsets, tl.maximum(tl.load(x_ptr + offsets, mask=mask), 0.0), mask=mask)
"""
IN_PLACE = "out = x.clone()\nrelu_kernel[(2,)](out, {n}, BLOCK=32)\nreturn out"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("drawn", "n", "found"),
    [
        ("torch.randn(61)", "61", ""),  # one pass has no element below zero
        ("torch.rand(61)", "61", ""),
        ("torch.rand(61)", "60", "NotFromKernel"),  # the last one is PyTorch's copy
        ("torch.rand(61)", "0", "NotFromKernel"),
    ],
)
def test_what_a_kernel_stored_is_its_own_though_it_was_there(drawn: str, n: str, found: str, place: Path) -> None:
    task = lab.task("return torch.relu(x)", f"[{drawn}]")

    result = lab.verify(lab.folder(place, task, lab.impl(IN_PLACE.format(n=n), kernels=RELU)))

    assert [failure["error_type"] for failure in result["failures"][:1]] == ([found] if found else []), result["failures"]
