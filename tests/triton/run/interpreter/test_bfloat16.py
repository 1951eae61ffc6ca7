"""Casts to and from bfloat16 and numbers of 8 bits in the interpreter give the numbers that a device gives."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.triton import lab

from pypto_op.triton.run.interpreter.bfloat16 import of_eight_bits

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
    "from whole numbers": ("(x * 900).int().bfloat16()", "(x * 900).to(tl.int32).to(tl.bfloat16)", "bfloat16"),
    "to whole numbers": ("(x * 900).bfloat16().int()", "(x * 900).to(tl.bfloat16).to(tl.int32)", "int32"),
    "from truth values": ("(x > 0).bfloat16().float()", "(x > 0).to(tl.bfloat16).to(tl.float32)", "float32"),
    "to itself": ("x.bfloat16().float()", "x.to(tl.bfloat16).to(tl.bfloat16).to(tl.float32)", "float32"),
    "its bits": ("x.bfloat16()", "x.to(tl.bfloat16).to(tl.uint16, bitcast=True).to(tl.bfloat16, bitcast=True)", "bfloat16"),
    "by the nearest": ("(x * 9).bfloat16()", 'tl.cast(x * 9, tl.bfloat16, fp_downcast_rounding="rtne")', "bfloat16"),
    "float16 by the nearest": ("(x * 9).half()", 'tl.cast(x * 9, tl.float16, fp_downcast_rounding="rtne")', "float16"),
    "8 bits": ("x.to(torch.float8_e4m3fn).float()", "x.to(tl.float8e4nv).to(tl.float32)", "float32"),
    "8 bits beyond the greatest": ("(x * 900).clamp(-448, 448).to(torch.float8_e4m3fn).float()",
                                   "(x * 900).to(tl.float8e4nv).to(tl.float32)", "float32"),
    "8 bits of a wide exponent": ("x.to(torch.float8_e5m2).float()", "x.to(tl.float8e5).to(tl.float32)", "float32"),
    "8 bits of bfloat16": ("x.bfloat16().to(torch.float8_e5m2).half()", "x.to(tl.bfloat16).to(tl.float8e5).to(tl.float16)",
                           "float16"),
    "small numbers of 8 bits": ("(x / 100).to(torch.float8_e4m3fn).float()", "(x / 100).to(tl.float8e4nv).to(tl.float32)",
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


FORMATS = {
    "float8e4nv": (torch.float8_e4m3fn, 448.0, 0x7F),
    "float8e5": (torch.float8_e5m2, 57344.0, 0x7F),
    "float8e4b8": (torch.float8_e4m3fnuz, 240.0, 0x80),
    "float8e5b16": (torch.float8_e5m2fnuz, 57344.0, 0x80),
}


@given(st.lists(st.floats(width=32), min_size=1, max_size=40), st.sampled_from(sorted(FORMATS)), st.integers(-20, 20))
def test_numbers_of_8_bits_are_those_of_torch(values: list[float], name: str, power: int) -> None:
    import triton.language as tl

    dtype, most, nan = FORMATS[name]
    given_values = torch.tensor(values) * 2.0**power
    wanted = given_values.clamp(-most, most).to(dtype).view(torch.uint8)
    found = of_eight_bits(given_values.double().numpy(), getattr(tl, name), most, nan)
    same = (found == wanted.numpy()) | np.isnan(given_values.numpy())
    assert same.all(), (given_values[~torch.from_numpy(same)], found[~same])
