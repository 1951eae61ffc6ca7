"""Casts to and from bfloat16 in the interpreter give the numbers that a device gives."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.triton import lab

KERNEL = """
@triton.jit
def cast(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, {cast}, mask=i < n)
"""
CASTS = {
    "rounded": ("x.bfloat16().float()", "x.to(tl.bfloat16).to(tl.float32)", "float32"),
    "rounded at the store": ("x.bfloat16()", "x", "bfloat16"),
    "from float16": ("x.half().bfloat16().float()", "x.to(tl.float16).to(tl.bfloat16).to(tl.float32)", "float32"),
    "to float16": ("x.bfloat16().half()", "x.to(tl.bfloat16).to(tl.float16)", "float16"),
    "from float64": ("(x.double() / 3).bfloat16().float()", "(x.to(tl.float64) / 3).to(tl.bfloat16).to(tl.float32)", "float32"),
    "from whole numbers": ("(x * 900).int().bfloat16().float()", "(x * 900).to(tl.int32).to(tl.bfloat16).to(tl.float32)", "float32"),
    "to whole numbers": ("(x * 900).bfloat16().int()", "(x * 900).to(tl.bfloat16).to(tl.int32)", "int32"),
    "from truth values": ("(x > 0).bfloat16().float()", "(x > 0).to(tl.bfloat16).to(tl.float32)", "float32"),
    "to itself": ("x.bfloat16().float()", "x.to(tl.bfloat16).to(tl.bfloat16).to(tl.float32)", "float32"),
    "its bits": ("x.bfloat16().float()", "x.to(tl.bfloat16).to(tl.uint16, bitcast=True).to(tl.bfloat16, bitcast=True).to(tl.float32)",
                 "float32"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASTS)
def test_a_cast_gives_what_a_device_gives(name: str, place: Path) -> None:
    want, cast, dtype = CASTS[name]
    forward = f"out = torch.empty_like(x, dtype=torch.{dtype})\ncast[(8,)](x, out, 512, BLOCK=64)\nreturn out"
    asked = lab.task(f"return {want}", "[torch.randn(8, 64)]")
    result = lab.verify(lab.folder(place, asked, lab.impl(forward, kernels=KERNEL.replace("{cast}", cast))))
    assert result["status"] == "PASS", result["failures"]
    metrics = result["cases"][0]["metrics"]["output"]
    assert metrics["max_abs_diff"] == 0, metrics
