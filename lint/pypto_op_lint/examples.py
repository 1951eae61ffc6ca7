"""Whole files for the rules' examples, so that an example differs from a legal operator in one thing only."""

from __future__ import annotations

import functools
import textwrap
from textwrap import indent

HEAD = """\
import os

import pypto
import torch
import torch_npu

torch.npu.set_device(int(os.environ.get("TILE_FWK_DEVICE_ID", "0")))
"""

PARAMETERS = """\
x: pypto.Tensor([pypto.DYNAMIC, 128], pypto.DT_FP32),
out: pypto.Tensor([pypto.DYNAMIC, 128], pypto.DT_FP32),
"""

BODY = """\
pypto.set_vec_tile_shapes(64, 128)
rows = x.shape[0]
for i in pypto.loop((rows + 63) // 64, name="ROWS", idx_name="i"):
    tile = pypto.view(x, [64, 128], [i * 64, 0], valid_shape=[pypto.min(rows - i * 64, 64), 128])
    pypto.assemble(pypto.exp(tile), [i * 64, 0], out)
"""

WRAPPER = """\
def demo_wrapper(x):
    out = torch.empty_like(x)
    demo_kernel(x, out)
    return out
"""

DECORATOR = '@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})'

GOLDEN = """\
import torch


def demo_golden(x):
    return torch.exp(x)
"""

TEST = """\
import os

import torch
import torch_npu

from demo_golden import demo_golden
from demo_impl import demo_wrapper
from detailed_tensor_compare import detailed_tensor_compare

DEVICE_ID = int(os.environ.get("TILE_FWK_DEVICE_ID", "0"))


def _run_and_check(rows, dtype):
    torch.npu.set_device(DEVICE_ID)
    torch.manual_seed(42)
    x = torch.randn((rows, 128), dtype=dtype, device=f"npu:{DEVICE_ID}")
    result = detailed_tensor_compare(demo_wrapper(x), demo_golden(x), tensor_name="out", atol=1e-3, rtol=1e-3)
    assert result["all_close"]


def test_demo_l0():
    _run_and_check(64, torch.float32)


def test_demo_l1():
    _run_and_check(1000, torch.float32)
"""


dedent = functools.cache(textwrap.dedent)
"""Remembered: most examples are made of the same parts."""


@functools.cache
def _inside(text: str) -> str:
    """`text` as it stands in a function."""
    return indent(dedent(text), "    ")


def impl(
    body: str = BODY,
    *,
    before: str = "",
    wrapper: str = WRAPPER,
    parameters: str = PARAMETERS,
    head: str = HEAD,
    decorator: str = DECORATOR,
    after: str = "",
) -> str:
    """Return an impl of the operator `demo`: a kernel that takes x and out, and its wrapper.

    Args:
        before: module code between the imports and the kernel (constants, helpers).
        parameters: the kernel's parameters, one a line.
        head: imports and device.
        after: module code behind the wrapper.
    """
    parts = [dedent(head)]
    if before:
        parts.append(dedent(before))
    parts.append(f"{decorator}\ndef demo_kernel(\n{_inside(parameters)}):\n{_inside(body)}")
    parts.append(dedent(wrapper))
    if after:
        parts.append(dedent(after))
    return "\n\n".join(part.strip("\n") + "\n" for part in parts if part.strip())


def with_vec_tiles(arguments: str, **parts: str) -> str:
    """Return the impl whose kernel sets these vector tiles."""
    return impl(BODY.replace("pypto.set_vec_tile_shapes(64, 128)", f"pypto.set_vec_tile_shapes({arguments})"), **parts)


def with_cube_tiles(arguments: str, **parts: str) -> str:
    """Return the impl whose kernel sets these cube tiles too."""
    return impl(f"pypto.set_cube_tile_shapes({arguments})\n" + BODY, **parts)


def with_host_line(line: str, **parts: str) -> str:
    """Return the impl whose wrapper runs this line between the launch and its `return`."""
    return impl(wrapper=WRAPPER.replace("    return out", f"    {line}\n    return out"), **parts)
