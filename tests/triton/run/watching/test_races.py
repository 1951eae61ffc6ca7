"""Programs of one launch that depend on each other's order are refused in the interpreter, which runs them in order."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.triton import lab

pytestmark = pytest.mark.slow

KERNELS = """
@triton.jit
def spilling_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + i, mask=i < N, other=0.0)
    tl.store(out_ptr + row * N + i, x, mask=(i < N) | (row < tl.num_programs(0) - 1))


@triton.jit
def own_kernel(x_ptr, out_ptr, top_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + i, mask=i < N, other=0.0)
    tl.store(top_ptr, 1.0)
    tl.store(out_ptr + row * N + i, x * tl.load(top_ptr), mask=i < N)


@triton.jit
def locked_kernel(x_ptr, out_ptr, lock_ptr, N, TAKE: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + i, mask=i < N, other=0.0)
    if TAKE:
        while tl.atomic_cas(lock_ptr, 0, 1) == 1:
            pass
    so_far = tl.load(out_ptr + i, mask=i < N)
    tl.store(out_ptr + i, so_far + x, mask=i < N)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0)


@triton.jit
def polling_kernel(x_ptr, out_ptr, part_ptr, flag_ptr, N, RELEASE: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + i, mask=i < N, other=0.0)
    before = tl.zeros([BLOCK], tl.float32)
    if row > 0:
        while tl.load(flag_ptr + row - 1, volatile=True) == 0:
            pass
        before = tl.load(part_ptr + (row - 1) * N + i, mask=i < N, other=0.0)
    tl.store(part_ptr + row * N + i, before + x, mask=i < N)
    if RELEASE:
        tl.atomic_xchg(flag_ptr + row, 1)
    else:
        tl.store(flag_ptr + row, 1)
    tl.store(out_ptr + row * N + i, before + x, mask=i < N)


@triton.jit
def added_and_read_kernel(x_ptr, out_ptr, total_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + i, mask=i < N, other=0.0)
    tl.atomic_add(total_ptr + i, x, mask=i < N)
    tl.store(out_ptr + row * N + i, tl.load(total_ptr + i, mask=i < N), mask=i < N)


@triton.jit
def doubled_kernel(out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(out_ptr + i, mask=i < n) * 2.0, mask=i < n)


@triton.jit
def halves_kernel(x_ptr, out_ptr, n, SHIFT: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)
    tl.debug_barrier()  # lanes of another shape read what these stored
    words = out_ptr.to(tl.pointer_type(tl.int16))
    j = tl.program_id(0) * 2 * BLOCK + tl.arange(0, 2 * BLOCK) - SHIFT
    tl.store(words + j, tl.load(words + j, mask=(j >= 0) & (j < 2 * n)), mask=(j >= 0) & (j < 2 * n))
"""
ROWS, SUM, PREFIX = "return x * 1", "return x.sum(dim=0)", "return torch.cumsum(x, dim=0)"
KINDS = {
    "two programs write the same element": (
        ROWS,
        "out = torch.empty_like(x)\nspilling_kernel[(6,)](x, out, 50, BLOCK=64)\nreturn out",
        "program (1, 0, 0) of spilling_kernel writes an element of 'out_ptr' that program (0, 0, 0) writes",
    ),
    "all programs write the same value, and read it back": (
        ROWS,
        "out = torch.empty_like(x)\ntop = torch.empty(1)\nown_kernel[(6,)](x, out, top, 50, BLOCK=64)\nreturn out",
        "",
    ),
    "a lock that each program takes": (
        SUM,
        "out = torch.zeros(50)\nlock = torch.zeros(1, dtype=torch.int32)\n"
        "locked_kernel[(6,)](x, out, lock, 50, TAKE=True, BLOCK=64)\nreturn out",
        "",
    ),
    "a lock that nobody takes": (
        SUM,
        "out = torch.zeros(50)\nlock = torch.zeros(1, dtype=torch.int32)\n"
        "locked_kernel[(6,)](x, out, lock, 50, TAKE=False, BLOCK=64)\nreturn out",
        "program (1, 0, 0) of locked_kernel reads an element of 'out_ptr' that program (0, 0, 0) writes",
    ),
    "a flag that is set by an atomic": (
        PREFIX,
        "out, part, flag = torch.empty_like(x), torch.empty_like(x), torch.zeros(6, dtype=torch.int32)\n"
        "polling_kernel[(6,)](x, out, part, flag, 50, RELEASE=True, BLOCK=64)\nreturn out",
        "",
    ),
    "a flag that is set by a store": (
        PREFIX,
        "out, part, flag = torch.empty_like(x), torch.empty_like(x), torch.zeros(6, dtype=torch.int32)\n"
        "polling_kernel[(6,)](x, out, part, flag, 50, RELEASE=False, BLOCK=64)\nreturn out",
        "program (1, 0, 0) of polling_kernel polls an element of 'flag_ptr' that program (0, 0, 0) writes",
    ),
    "a total that is read while others add to it": (
        PREFIX,
        "out, total = torch.empty_like(x), torch.zeros(50)\nadded_and_read_kernel[(6,)](x, out, total, 50, BLOCK=64)\nreturn out",
        "changes by an atomic an element of 'total_ptr' that program (0, 0, 0) reads",
    ),
    "each program changes its own part in place, in two launches": (
        "return x * 4",
        "out = x.clone()\ndoubled_kernel[(5,)](out, 300, BLOCK=64)\ndoubled_kernel[(10,)](out, 300, BLOCK=32)\nreturn out",
        "",
    ),
    "halves of the own elements": (
        ROWS,
        "out = torch.empty_like(x)\nhalves_kernel[(5,)](x, out, 300, BLOCK=64, SHIFT=0)\nreturn out",
        "",
    ),
    "half of another program's element": (
        ROWS,
        "out = torch.empty_like(x)\nhalves_kernel[(5,)](x, out, 300, BLOCK=64, SHIFT=1)\nreturn out",
        "program (1, 0, 0) of halves_kernel reads an element of 'out_ptr' that program (0, 0, 0) writes",
    ),
}


@pytest.mark.parametrize("name", sorted(KINDS))
def test_programs_that_depend_on_their_order_are_refused(name: str, place: Path) -> None:
    asked, forward, words = KINDS[name]
    result = lab.verify(lab.folder(place, lab.task(asked, "[torch.randn(6, 50)]"), lab.impl(forward, kernels=KERNELS)))
    if not words:
        assert result["status"] == "PASS", result["failures"]
        return
    assert lab.first_error(result) == "RaceError", result["failures"]
    assert words in result["failures"][0]["error_msg"] and "expo_triton_ascend_impl.py:" in result["failures"][0]["error_msg"]
