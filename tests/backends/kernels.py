"""Small candidates for the tests: one correct kernel, and places where a fault can be planted."""

from __future__ import annotations

HEAD = """
import os
import sys
import time

import pypto
import torch
import torch_npu

torch.npu.set_device(int(os.environ.get("TILE_FWK_DEVICE_ID", "0")))
"""

KERNEL = """

@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
def double_kernel(
    x: pypto.Tensor([pypto.DYNAMIC, 32], pypto.DT_FP32),
    out: pypto.Tensor([pypto.DYNAMIC, 32], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(16, 32)
    for i in pypto.loop((x.shape[0] + 15) // 16, name="ROWS", idx_name="i"):
        rows = pypto.min(x.shape[0] - i * 16, 16)
        tile = pypto.view(x, [16, 32], [i * 16, 0], valid_shape=[rows, 32])
        pypto.assemble(tile * 2.0, [i * 16, 0], out)

"""

WRAPPER = """
def double_wrapper(x):
    out = torch.empty_like(x)
    double_kernel(x, out)
    return out
"""

GOOD = HEAD + KERNEL + WRAPPER

GOLDEN = """
import torch


def double_golden(x):
    return x * 2.0
"""

TEST_INPUTS = """
import torch

PRIMARY_INPUT_ORDER = ["x"]
DEVICE = torch.device("npu:0")


def make_inputs(case):
    torch.manual_seed(case.get("seed", 42))
    return {"x": torch.randn(case["shape"]["T"], 32, device=DEVICE)}
"""


def at_import(statement: str) -> str:
    """Return the good candidate with `statement` run at import."""
    return HEAD + statement + KERNEL + WRAPPER


def in_wrapper(*statements: str, before: str = "", returns: str = "out") -> str:
    """Return the good candidate with `statements` run after the launch, and another return value."""
    lines = ["def double_wrapper(x):", *([before] if before else []), "out = torch.empty_like(x)"]
    lines += ["double_kernel(x, out)", *statements, f"return {returns}"]
    return HEAD + KERNEL + "\n" + "\n    ".join(lines) + "\n"


def host_only(*statements: str, returns: str = "out") -> str:
    """Return a candidate that launches nothing, for faults that have nothing to do with a kernel; it starts faster."""
    lines = ["def double_wrapper(x):", "out = x * 2", *statements, f"return {returns}"]
    return HEAD + "\n" + "\n    ".join(lines) + "\n"


def instead(*statements: str) -> str:
    """Return a candidate whose wrapper consists of `statements` only."""
    return HEAD + KERNEL + "\n" + "\n    ".join(["def double_wrapper(x):", *statements]) + "\n"
