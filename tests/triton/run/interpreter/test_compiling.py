"""Triton's compiler is asked about kernels that its interpreter runs (fresh/ignored_arguments.yaml has whole files)."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from tests.triton import lab

from pypto_op.triton.run.interpreter import compiling

KERNELS = """
import torch
import triton
import triton.language as tl
from pypto_op.triton.run.interpreter import compiling
from pypto_op.triton.run.interpreter.compiling import Compiling

DONE, FRONT_END = [], compiling._front_end
compiling._front_end = lambda kernel, kind: DONE.append(FRONT_END(kernel, kind))


@triton.jit
def twice(x):
    return x + x


@triton.jit
def right(x_ptr, out_ptr, n, stride, scale, OF: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for _ in range(0, tl.cdiv(n, BLOCK)):
        x = OF(tl.load(x_ptr + i * stride, mask=i < n, other=0.0)) * scale
        total += tl.softmax(x) + x.sum() + tl.sort(x) + tl.cumsum(tl.sigmoid(x), 0) + tl.max(x, 0, return_indices=True)[0]
    tl.store(out_ptr + i, total, mask=i < n)


@triton.jit
def wrong(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    total = 0
    for _ in range(0, n):
        total += twice(tl.load(x_ptr + i))
    tl.store(out_ptr + i, total)


asked = Compiling()
x, out = torch.randn(16), torch.empty(16)
for _ in range(2):
    asked.note(right, (x, out, 16, 1, 0.5), {"OF": twice, "BLOCK": 16, "grid": (1,)})
    right[(1,)](x, out, 16, 1, 0.5, OF=twice, BLOCK=16)
    kept = dict(vars(tl)), dict(vars(tl.tensor)), twice
    assert asked.refused() == "", asked.refused()
    assert kept == (dict(vars(tl)), dict(vars(tl.tensor)), twice)
assert len(asked._asked) == len(DONE) == 1  # compiled, and once
asked.note(wrong, (x, out, 2), {"BLOCK": 16})
wrong[(1,)](x, out, 2, BLOCK=16)
said = asked.refused()
assert "kernel wrong" in said and "Loop-carried variable total" in said, said
"""


@pytest.mark.slow
def test_a_kernel_that_no_compiler_takes_is_told_and_the_interpreter_stays_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "kernels.py").write_text(textwrap.dedent(KERNELS), encoding="utf-8")
    folder = Path(compiling.__file__).parents[4]
    done = subprocess.run(
        [sys.executable, "kernels.py"], cwd=tmp_path, env={**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": str(folder)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


DEVICE_FUNCTIONS = {
    "from triton.language.extra.libdevice import tanh": "tanh",
    "from triton.language.extra.cuda.libdevice import tanh": "tanh",
    "from triton.language.extra.cuda.libdevice import tanh as squash": "squash",
    "from triton.language.extra import libdevice": "libdevice.tanh",
    "from triton.language.extra.cuda import libdevice as device": "device.tanh",
    "import triton.language.extra": "tl.extra.cuda.libdevice.tanh",
}


@pytest.mark.parametrize("total", ["tl.zeros([16], tl.float32)", "0"])
@pytest.mark.parametrize("line", DEVICE_FUNCTIONS)
def test_kernels_that_call_a_device_function_by_any_name_are_asked_about(line: str, total: str, place: Path) -> None:
    """The compiler does not see the interpreter's stand-ins for libdevice; five public kernels were refused for them."""
    kernels = f"""{line}

@triton.jit
def sums(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    total = {total}
    for start in range(0, n, BLOCK):
        total += {DEVICE_FUNCTIONS[line]}(tl.load(x_ptr + start + i, mask=start + i < n, other=0.0))
    tl.store(out_ptr + i, total)
"""
    forward = "out = x.new_empty(16)\nsums[(1,)](x, out, x.numel(), BLOCK=16)\nreturn out"
    asked = lab.task("return torch.tanh(x).view(3, 16).sum(0)", "[torch.randn(48)]")
    result = lab.verify(lab.folder(place, asked, lab.impl(forward, kernels=kernels)))
    if total == "0":
        assert lab.first_error(result) == "CompilationError", result["failures"]
        assert "Loop-carried variable total" in result["failures"][0]["error_msg"]
    else:
        assert result["status"] == "PASS", result["failures"]


@pytest.mark.parametrize("value", [object(), [1], {"a": 1}, (1, object())], ids=["object", "list", "dict", "tuple"])
def test_no_code_of_the_candidate_runs_for_it(value: object) -> None:
    assert not compiling._is_plain(value)
