"""A forward may send its tensors to the device and make others there: the host shim's own questions are no reads of values."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.triton import lab

LAUNCH = "exp_kernel[(8,)](x, out, x.numel(), BLOCK=64)\nreturn out"
LINES = (
    "x = x.cuda()", "x = x.npu()", 'x = x.to("cuda")', 'x = x.to(torch.device("npu:0"))', "x = x.cuda(non_blocking=True)",
    "x = x.to(device=x.device, dtype=x.dtype)", 'x = x.to("cuda", torch.float32).contiguous()', "self.cuda()",
)  # fmt: skip
MADE = (
    "torch.empty_like(x)", 'torch.empty(x.shape, device="cuda")',
    'torch.zeros_like(x, device="npu")', "x.new_empty(x.shape).cuda()",
    "torch.empty_like(x).npu()", 'torch.full(x.shape, 0.0, device="cuda")',
)  # fmt: skip


@pytest.mark.parametrize(("line", "made"), [*((line, MADE[0]) for line in LINES), *(("pass", made) for made in MADE[1:])])
def test_nothing_is_read_where_a_tensor_goes_to_the_device(line: str, made: str, place: Path) -> None:
    result = lab.verify(lab.folder(place, lab.EXPO, lab.impl(f"{line}\nout = {made}\n{LAUNCH}", kernels=lab.EXP_KERNEL)))
    assert result["status"] == "PASS", result["failures"]


def test_a_read_of_the_file_is_one_all_the_same(place: Path) -> None:
    forward = f"memory = x.cuda().untyped_storage()\nout = torch.full_like(x, float(memory[0]))\n{LAUNCH}"
    result = lab.verify(lab.folder(place, lab.EXPO, lab.impl(forward, kernels=lab.EXP_KERNEL)))
    assert result["status"] == "FAIL", result["cases"]
