"""What Triton's interpreter is spared changes no answer."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.triton import lab

from pypto_op.triton.run.interpreter import sparing

WRAPS = """
@triton.jit
def hashed(x_ptr, out_ptr):
    i = tl.program_id(0) * 32 + tl.arange(0, 32)
    h = (i + 1) * 1103515245 - 2147483647
    tl.store(out_ptr + i, tl.load(x_ptr + i) + (h % 7).to(tl.float32))
"""
HASHED = "h = (torch.arange(1, 257, dtype=torch.int32) * 1103515245 - 2147483647).fmod(7)"


def test_a_whole_number_wraps_around_as_on_a_device(place: Path) -> None:
    forward = "out = torch.empty_like(x)\nhashed[(8,)](x, out)\nreturn out"
    asked = lab.task(f"{HASHED}\nreturn x + h", "[torch.randn(256)]")
    result = lab.verify(lab.folder(place, asked, lab.impl(forward, kernels=WRAPS)))
    assert result["status"] == "PASS", result["failures"]


def test_each_launch_begins_anew_and_may_launch_within() -> None:
    import triton.language as tl

    own, core = SimpleNamespace(__globals__={"tl": tl}), SimpleNamespace(__globals__={"core": tl.core})
    put: list[Any] = []
    patched, launched = sparing._once_a_launch(put.append, lambda _, work: work())

    def kernel() -> None:
        for function in (own, core, own, core):
            patched(function)

    def with_another() -> None:
        kernel()
        launched(None, kernel)
        kernel()

    launched(None, kernel)
    assert put == [own, core]
    put.clear()
    launched(None, with_another)
    assert put == [own, core] * 3
    put.clear()
    patched(own)
    patched(own)
    assert put == [own, own]  # outside of a launch nothing is known to lie there


NESTED = """
@triton.jit
def inner(x):
    return tl.sum(x, axis=0) / tl.max(x, axis=0)


@triton.jit
def outer(x):
    return inner(x) + tl.cdiv(7, 2)


@triton.jit
def nested(x_ptr, out_ptr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x = tl.load(x_ptr + row * BLOCK + tl.arange(0, BLOCK))
    tl.store(out_ptr + row, outer(x) + outer(x + 1))
"""


def test_a_kernel_whose_functions_call_functions_passes(place: Path) -> None:
    forward = "out = torch.empty(x.shape[0])\nnested[(x.shape[0],)](x, out, BLOCK=32)\nreturn out"
    asked = lab.task("return x.sum(1) / x.amax(1) + (x + 1).sum(1) / (x + 1).amax(1) + 8", "[torch.rand(6, 32) + 0.5]")
    result = lab.verify(lab.folder(place, asked, lab.impl(forward, kernels=NESTED)))
    assert result["status"] == "PASS", result["failures"]
