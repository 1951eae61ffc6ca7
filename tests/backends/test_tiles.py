"""Tiles that do not fit the chip are refused with their arithmetic, although pypto's simulator takes them."""

from __future__ import annotations

import configparser
from importlib import util
from pathlib import Path

import pytest
import torch

from pypto_op import hardware
from pypto_op.vocabulary import Outcome

from . import kernels
from .conftest import Run

PRODUCT = (
    kernels.HEAD
    + """

def tile_sizes(width):
    return [width, width * WIDE]


WIDE = 1


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
def double_kernel(
    x: pypto.Tensor([pypto.DYNAMIC, 32], pypto.DT_FP32),
    eye: pypto.Tensor([32, 32], pypto.DT_FP32),
    out: pypto.Tensor([pypto.DYNAMIC, 32], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(16, 32)
    SET_CUBE
    for i in pypto.loop((x.shape[0] + 15) // 16, name="ROWS", idx_name="i"):
        rows = pypto.min(x.shape[0] - i * 16, 16)
        tile = pypto.view(x, [16, 32], [i * 16, 0], valid_shape=[rows, 32])
        pypto.assemble(pypto.matmul(tile, eye, pypto.DT_FP32) * 2.0, [i * 16, 0], out)


def double_wrapper(x):
    out = torch.empty_like(x)
    double_kernel(x, torch.eye(32), out)
    return out
"""
)


def cube(setting: str) -> str:
    return PRODUCT.replace("SET_CUBE", setting)


def vector(setting: str) -> str:
    return kernels.GOOD.replace("pypto.set_vec_tile_shapes(16, 32)", setting)


def test_the_limits_are_those_of_the_wheel() -> None:
    found = util.find_spec("pypto")
    assert found is not None
    assert found.origin is not None
    page = configparser.ConfigParser(strict=False, interpolation=None)
    page.optionxform = str  # type: ignore[assignment, method-assign]
    page.read(Path(found.origin).parent / "lib" / "configs" / "A2A3.ini")
    core, chip = page["AICoreSpec"], hardware.CHIP
    stated = [core.getint(name) for name in ("ub_size", "l0_a_size", "l0_b_size", "l0_c_size", "l1_size", "ubblock_size")]
    assert stated == [chip.ub, chip.l0a, chip.l0b, chip.l0c, chip.l1, chip.block]
    assert {core.getint(f"cube_{axis}_size") for axis in "mkn"} == {chip.fractal}


def test_every_dtype_of_pypto_has_a_width() -> None:
    import pypto

    widths = {n[3:]: pypto.bytes_of(getattr(pypto, n)) for n in dir(pypto) if n.startswith("DT_") and n != "DT_BOTTOM"}
    assert set(widths) == set(hardware.DTYPE_BITS)
    assert {n: w for n, w in widths.items() if hardware.DTYPE_BITS[n] not in (4, w * 8)} == {}


@pytest.mark.sim
@pytest.mark.usefixtures("numeric")
@pytest.mark.parametrize(
    ("source", "arithmetic"),
    [
        (vector("pypto.set_vec_tile_shapes(2048, 32)"), "UB: 2048 x 32 x 4 = 262144 > 196608"),
        (vector("pypto.set_options(vec_tile_shapes=[2048, int('32')])"), "UB: 2048 x 32 x 4 = 262144 > 196608"),
        (
            kernels.GOOD.replace("tile * 2.0", "twice(tile)")
            + "\n\n@pypto.options(vec_tile_shapes=[512, 128])\ndef twice(tile):\n    return tile * 2.0\n",
            "UB: 512 x 128 x 4 = 262144 > 196608",
        ),
        (vector("pypto.set_vec_tile_shapes(16, len('seven') + 5)"), "10 x 4 = 40 bytes, no multiple of 32"),
        (
            cube("pypto.set_cube_tile_shapes([1024, 1024], [1024, 1024], [1024, 1024])"),
            "L0A: mL0 x kL0 x bytes = 1024 x 1024 x 4 = 4194304 > 65536",
        ),
        (
            cube("pypto.set_cube_tile_shapes([16, 16], tile_sizes(32), [32, 8192])"),
            "L1: (mL1 x kL1 + kL1 x nL1) x bytes = 16 x 32 x 4 + 32 x 8192 x 4 = 1050624 > 524288",
        ),
    ],
    ids=["vector", "vector-by-options", "vector-in-a-scope", "vector-out-of-line", "cube", "l1-computed"],
)
def test_what_does_not_fit_is_refused(run: Run, source: str, arithmetic: str) -> None:
    result = run(source)
    assert result.outcome is Outcome.DOES_NOT_FIT, result.detail
    assert arithmetic in result.detail
    assert result.outputs == []


@pytest.mark.sim
@pytest.mark.usefixtures("numeric")
@pytest.mark.parametrize(
    "source",
    [
        cube("pypto.set_cube_tile_shapes([8, 8], tile_sizes(64), [128, 256])"),
        vector("pypto.set_vec_tile_shapes(1024, 48)"),
        vector("pypto.set_vec_tile_shapes(1536, 32)"),
    ],
    ids=["cube", "vector", "all-of-ub"],
)
def test_what_fits_is_taken(run: Run, source: str) -> None:
    result = run(source)
    assert result.outcome is Outcome.OK, result.detail
    assert torch.equal(result.outputs[0], torch.arange(20 * 32, dtype=torch.float32).reshape(20, 32) * 2)
