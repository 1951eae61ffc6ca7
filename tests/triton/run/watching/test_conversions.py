"""PyTorch converts what a kernel computed where nothing is lost by it; fractions are cut off by a kernel."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.triton import lab

pytestmark = pytest.mark.slow

_KERNEL = """
@triton.jit
def scaled_kernel(x_ptr, out_ptr, n, WHOLE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0) * 9
    tl.store(out_ptr + i, tl.where(x < 0, tl.ceil(x), tl.floor(x)) if WHOLE else x, mask=i < n)
"""


@pytest.mark.parametrize(
    ("whole", "converted", "said"),
    [
        (False, "out.to(torch.int32)", "Forbidden"),
        (False, "out.view(5, 8).t().contiguous().t().reshape(-1).int()", "Forbidden"),
        (False, "torch.empty(40, dtype=torch.int32, device=x.device).copy_(out)", "Forbidden"),
        (True, "out.to(torch.int32)", ""),
    ],
)
def test_fractions_are_cut_off_by_a_kernel(tmp_path: Path, whole: bool, converted: str, said: str) -> None:
    task = lab.task("return (x * 9).to(torch.int32)", "[torch.randn(40)]")
    lines = f"out = torch.empty_like(x)\nscaled_kernel[(2,)](x, out, 40, WHOLE={whole}, BLOCK=32)\nreturn {converted}"
    result = lab.verify(lab.folder(tmp_path / "op", task, lab.impl(lines, kernels=_KERNEL)))
    assert (result["status"], lab.first_error(result)) == ("FAIL" if said else "PASS", said), result
