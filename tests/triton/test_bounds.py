"""A kernel that writes outside of every tensor is refused in the interpreter, whatever its outputs are."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.triton import lab

pytestmark = pytest.mark.slow

KERNELS = """
@triton.jit
def off_kernel(x_ptr, out_ptr, n, shift, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, value, mask=offsets < n)
    tl.WRITE(out_ptr + offsets + shift, value, mask=offsets == n - 1)


@triton.jit
def through_table_kernel(table_ptr, x_ptr, n, BLOCK: tl.constexpr):
    out_ptr = tl.load(table_ptr).to(tl.pointer_type(tl.float32))
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n), mask=offsets < n)
"""
SAME = lab.task("return x * 1", "[torch.randn(50)]")
OFF = "out = torch.empty_like(x)\noff_kernel[(1,)](x, out, 50, SHIFT, BLOCK=64)\nreturn out"


@pytest.mark.parametrize("write", ["store", "atomic_max"])
@pytest.mark.parametrize(("shift", "words"), [(0, ""), (1, "behind the end of 'out_ptr'"), (-60, "before the beginning")])
def test_a_write_outside_is_refused_and_named(write: str, shift: int, words: str, place: Path) -> None:
    kernels = KERNELS.replace("WRITE", write)
    result = lab.verify(lab.folder(place, SAME, lab.impl(OFF.replace("SHIFT", str(shift)), kernels=kernels)))
    if not words:
        assert result["status"] == "PASS", result["failures"]
        return
    assert lab.first_error(result) == "OutOfBoundsError", result["failures"]
    assert "off_kernel writes 1 element(s)" in result["failures"][0]["error_msg"]
    assert "expo_triton_ascend_impl.py:" in result["failures"][0]["error_msg"]


def test_memory_that_a_table_of_pointers_names_may_be_written(place: Path) -> None:
    forward = """
    out = torch.empty_like(x)
    table = torch.tensor([out.data_ptr()])
    through_table_kernel[(1,)](table, x, 50, BLOCK=64)
    return out
    """
    result = lab.verify(lab.folder(place, SAME, lab.impl(forward, kernels=KERNELS.replace("WRITE", "store"))))
    assert "OutOfBoundsError" not in str(result["failures"])
