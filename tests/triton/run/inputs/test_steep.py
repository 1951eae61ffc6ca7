"""Sums of exponentials over blocks: the running maximum is that of all blocks so far, not of the last or of the first one."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.triton import lab

pytestmark = pytest.mark.slow

KERNEL = """
@triton.jit
def online(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    x_ptr += tl.program_id(0) * n
    most = -float("inf")
    total = 0.0
    for begin in range(0, n, BLOCK):
        i = begin + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + i, mask=i < n, other=-float("inf")).to(tl.float32)
        here = NEXT
        total = total * tl.exp(most - here) + tl.sum(tl.exp(x - here), 0)
        most = here
    tl.store(out_ptr + tl.program_id(0), most + tl.log(total))
"""
ALL, LAST, FIRST = "tl.maximum(most, tl.max(x, 0))", "tl.max(x, 0)", "tl.where(begin == 0, tl.max(x, 0), most)"


@pytest.mark.parametrize(
    ("following", "dtype", "status"),
    [
        (ALL, "float32", "PASS"),
        (ALL, "float16", "PASS"),
        (LAST, "float32", "FAIL"),
        (LAST, "float16", "FAIL"),
        (FIRST, "float32", "FAIL"),
    ],
)
@pytest.mark.parametrize("given", ["torch.randn(6, 150)", "torch.randn(2, 3, 40)"])
def test_a_running_maximum_is_not_that_of_one_block(given: str, following: str, dtype: str, status: str, place: Path) -> None:
    task = lab.task("return torch.logsumexp(x.float(), -1)", f"[{given}.to(torch.{dtype})]")
    forward = """
        out = torch.empty(x.shape[:-1], dtype=torch.float32, device=x.device)
        online[(out.numel(),)](x, out, x.shape[-1], BLOCK=32)
        return out
    """
    result = lab.verify(lab.folder(place, task, lab.impl(forward, kernels=KERNEL.replace("NEXT", following))))
    assert result["status"] == status, lab.first_error(result) if result["failures"] else result["caveats"]
