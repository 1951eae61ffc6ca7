"""End-to-end test of demo: impl against golden, every leaf."""
import os
import sys
from pathlib import Path

_OP_DIR = Path(__file__).resolve().parent
for _p in (_OP_DIR, _OP_DIR / "eval"):
    if str(_p) not in sys.path:
        sys.path.insert(0, str(_p))

import pytest
import torch
import torch_npu

from demo_golden import demo_golden
from demo_impl import demo_wrapper
from detailed_tensor_compare import detailed_tensor_compare
from test_inputs import make_inputs


def _set_device():
    torch.npu.set_device(int(os.environ.get("TILE_FWK_DEVICE_ID", "0")))


def _run_and_check(shape, dtype):
    _set_device()
    torch.manual_seed(42)
    inputs = make_inputs({"id": "e2e", "level": 1, "shape": shape, "dtype": dtype, "seed": 42})
    actual = demo_wrapper(*inputs.values())
    expected = demo_golden(*inputs.values())
    if not isinstance(actual, tuple):
        actual, expected = (actual,), (expected,)
    assert len(actual) == len(expected)
    report = {}
    for i, (a, b) in enumerate(zip(actual, expected)):
        report[f"o{i}"] = detailed_tensor_compare(a, b, atol=1e-4, rtol=1e-4, tensor_name=f"o{i}")
    bad = [n for n, r in report.items() if not r["all_close"]]
    if bad:
        pytest.fail(str(bad))


def test_demo_l0():
    """Smallest legal shape."""
    _run_and_check({"T": 1}, "float32")


def test_demo_l1():
    """P0 shape of SPEC.md: (128, 64), fp32."""
    _run_and_check({"T": 128}, "float32")


if __name__ == "__main__":
    test_demo_l0()
    test_demo_l1()
