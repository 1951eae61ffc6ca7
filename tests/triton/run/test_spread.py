"""Launches that are given `*x.stride()`: nobody knows by reading how many numbers that is, and the run sees who was stored to."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.triton import lab

pytestmark = pytest.mark.slow

KERNEL = """
@triton.jit
def rows(x_ptr, sx, sx1, at_ptr, out_ptr, so, so1, so2, count, N: tl.constexpr, B: tl.constexpr = 32):
    i = tl.arange(0, B)
    row = tl.load(at_ptr + tl.program_id(0))
    x = tl.load(x_ptr + row * sx + i * sx1, mask=i < N)
    tl.store(out_ptr + tl.program_id(0) * so + i * so2, x + count, mask=i < N)
"""
TASK = lab.task("return (x[xs[1]] + xs[2])[:, None]", "[torch.randn(9, 20), torch.randint(0, 9, (5,)), 3]")


@pytest.mark.parametrize(
    ("returned", "status"), [("out", "PASS"), ("x[:5, None].clone()", "FAIL"), ("other", "FAIL")], ids=["out", "copy", "other"]
)
def test_what_a_launch_with_spread_strides_stores_to_is_left_to_the_run(returned: str, status: str, place: Path) -> None:
    forward = f"""
        out = torch.empty((5, 1, 20), device=x.device)
        other = torch.zeros((5, 1, 20), device=x.device)
        rows[(5,)](x, *x.stride(), xs[1], out, *out.stride(), xs[2], N=20)
        return {returned}
    """
    result = lab.verify(lab.folder(place, TASK, lab.impl(forward, kernels=KERNEL)))
    assert result["status"] == status, lab.first_error(result)
