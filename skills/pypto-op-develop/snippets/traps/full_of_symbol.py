"""`pypto.full` of a value that depends on the loop writes 0 in `sim`. Build positions from arange, or read them from an input."""

import pypto
import torch

ROWS, WIDTH = 16, 32


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
def bad_kernel(
    x: pypto.Tensor([pypto.DYNAMIC, WIDTH], pypto.DT_FP32),
    tile_of: pypto.Tensor([pypto.DYNAMIC, 1], pypto.DT_FP32),
    out: pypto.Tensor([pypto.DYNAMIC, WIDTH], pypto.DT_FP32),
):
    total = x.shape[0]
    for step in pypto.loop((total + ROWS - 1) // ROWS, name="ROWS", idx_name="step"):
        pypto.set_vec_tile_shapes(16, 32)
        row = step * ROWS
        valid = pypto.min(total - row, ROWS)
        x_tile = pypto.view(x, [ROWS, WIDTH], [row, 0], valid_shape=[valid, WIDTH])
        number = pypto.full([ROWS, WIDTH], step, pypto.DT_FP32, valid_shape=[valid, WIDTH])
        pypto.assemble(x_tile + number, [row, 0], out)


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
def good_kernel(
    x: pypto.Tensor([pypto.DYNAMIC, WIDTH], pypto.DT_FP32),
    tile_of: pypto.Tensor([pypto.DYNAMIC, 1], pypto.DT_FP32),
    out: pypto.Tensor([pypto.DYNAMIC, WIDTH], pypto.DT_FP32),
):
    total = x.shape[0]
    for step in pypto.loop((total + ROWS - 1) // ROWS, name="ROWS", idx_name="step"):
        pypto.set_vec_tile_shapes(16, 32)
        row = step * ROWS
        valid = pypto.min(total - row, ROWS)
        x_tile = pypto.view(x, [ROWS, WIDTH], [row, 0], valid_shape=[valid, WIDTH])
        number = pypto.view(tile_of, [ROWS, 1], [row, 0], valid_shape=[valid, 1])
        pypto.assemble(x_tile + number, [row, 0], out)


def bad_wrapper(x, tile_of):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    bad_kernel(x, tile_of, out)
    return out


def good_wrapper(x, tile_of):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    good_kernel(x, tile_of, out)
    return out
