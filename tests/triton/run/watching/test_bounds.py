"""A kernel that reads or writes outside of every tensor is refused in the interpreter, whatever its outputs are."""

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
def beyond_kernel(x_ptr, out_ptr, n, shift, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    beyond = tl.load(x_ptr + offsets + shift, mask=offsets == n - 1, other=0.0)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) + beyond * 0.0, mask=mask)


@triton.jit
def unmasked_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets), mask=offsets < n)


@triton.jit
def block_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    block = tl.make_block_ptr(x_ptr, shape=(BLOCK,), strides=(1,), offsets=(0,), block_shape=(BLOCK,), order=(0,))
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(block), mask=offsets < n)


@triton.jit
def shuffled_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = n - 1 - tl.arange(0, BLOCK)
    value = tl.load(x_ptr + offsets, mask=offsets >= 0, other=1.0)
    tl.store(out_ptr + offsets, value, mask=offsets >= 0)


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


READS = {
    "right": ("beyond_kernel[(1,)](x, out, 50, 0, BLOCK=64)", ""),
    "lanes that are off": ("shuffled_kernel[(1,)](x, out, 50, BLOCK=64)", ""),
    "behind": ("beyond_kernel[(1,)](x, out, 50, 1, BLOCK=64)", "1 element(s) behind the end of 'x_ptr', the first at offset 50;"),
    "before": ("beyond_kernel[(1,)](x, out, 50, -54, BLOCK=64)", "before the beginning of 'x_ptr', the first at offset -5;"),
    "without a mask": ("unmasked_kernel[(1,)](x, out, 50, BLOCK=64)", "14 element(s) behind the end of 'x_ptr'"),
    "by a block pointer": ("block_kernel[(1,)](x, out, 50, BLOCK=64)", "14 element(s) behind the end of 'x_ptr'"),
    "behind a view, in its storage": (
        "wide = torch.zeros(64)\nwide[:50].copy_(x)\nunmasked_kernel[(1,)](wide[:50], out, 50, BLOCK=64)",
        "",
    ),
}


@pytest.mark.parametrize("name", sorted(READS))
def test_a_read_outside_is_refused_and_named(name: str, place: Path) -> None:
    launch, words = READS[name]
    forward = f"out = torch.empty_like(x)\n{launch}\nreturn out"
    result = lab.verify(lab.folder(place, SAME, lab.impl(forward, kernels=KERNELS.replace("WRITE", "store"))))
    if not words:
        assert result["status"] == "PASS", result["failures"]
        return
    assert lab.first_error(result) == "OutOfBoundsError", result["failures"]
    message = result["failures"][0]["error_msg"]
    assert words in message and "_kernel reads " in message and "expo_triton_ascend_impl.py:" in message


def test_memory_that_a_table_of_pointers_names_may_be_written(place: Path) -> None:
    forward = """
    out = torch.empty_like(x)
    table = torch.tensor([out.data_ptr()])
    through_table_kernel[(1,)](table, x, 50, BLOCK=64)
    return out
    """
    result = lab.verify(lab.folder(place, SAME, lab.impl(forward, kernels=KERNELS.replace("WRITE", "store"))))
    assert "OutOfBoundsError" not in str(result["failures"])
