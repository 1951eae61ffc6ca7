"""Whole numbers that a task draws from zero: what is wrong only below zero is said, and what its own draws show is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.triton import lab

from pypto_op.triton.run.inputs.stretched import TOLD_BELOW

QUOTIENT = """
@triton.jit
def cut_off(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n, other=0) // 7, mask=i < n)
"""
GREATEST = """
@triton.jit
def from_minus_one(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    r, i = tl.program_id(0), tl.arange(0, BLOCK)
    tl.store(out_ptr + r, tl.max(tl.load(x_ptr + r * n + i, mask=i < n, other=-1), 0))
"""
DIVIDED = ("return x // 7", "out = torch.empty_like(x)\ncut_off[(4,)](x, out, 800, BLOCK=256)\nreturn out", QUOTIENT)
LARGEST = ("return x.amax(-1)", "out = x.new_empty(16)\nfrom_minus_one[(16,)](x, out, 50, BLOCK=64)\nreturn out", GREATEST)


ROUNDED_DOWN = QUOTIENT.replace(
    "    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n, other=0) // 7",
    """\
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    tl.store(out_ptr + i, x // 7 - (x % 7 < 0)""",
)


def _verdict(place: Path, low: int, want: str, forward: str, kernels: str) -> tuple[str, set[str], bool]:
    asked = lab.task(want, f"[torch.randint({low}, 1000, (16, 50), dtype=torch.int32)]")
    result = lab.verify(lab.folder(place, asked, lab.impl(forward, kernels=kernels)))
    assert not result["error"], result["error"]
    said = any(TOLD_BELOW in line for line in result["caveats"])
    return result["status"], {failure["error_type"] for failure in result["failures"]}, said


@pytest.mark.parametrize(("want", "forward", "kernels"), [DIVIDED, LARGEST], ids=["quotient", "greatest"])
def test_what_is_wrong_below_zero_alone_is_said(want: str, forward: str, kernels: str, place: Path) -> None:
    assert _verdict(place, 0, want, forward, kernels) == ("PASS", set(), True)


def test_what_the_draws_of_the_task_show_is_refused(place: Path) -> None:
    assert _verdict(place, -1000, *DIVIDED) == ("FAIL", {"PrecisionError"}, False)


@pytest.mark.parametrize("low", [0, -1000])
def test_a_right_quotient_has_no_such_caveat(low: int, place: Path) -> None:
    assert _verdict(place, low, *DIVIDED[:2], ROUNDED_DOWN) == ("PASS", set(), False)
