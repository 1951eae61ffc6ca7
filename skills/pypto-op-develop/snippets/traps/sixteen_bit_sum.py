"""A sum in float16 loses what float32 keeps, and overflows above 65504. Widen before the reduction."""

import pypto
import torch

ROWS, WIDTH = 16, 512


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
def bad_kernel(
    x: pypto.Tensor([pypto.DYNAMIC, WIDTH], pypto.DT_FP16),
    out: pypto.Tensor([pypto.DYNAMIC, 1], pypto.DT_FP32),
):
    total = x.shape[0]
    for step in pypto.loop((total + ROWS - 1) // ROWS, name="ROWS", idx_name="step"):
        pypto.set_vec_tile_shapes(16, 512)
        row = step * ROWS
        valid = pypto.min(total - row, ROWS)
        x_tile = pypto.view(x, [ROWS, WIDTH], [row, 0], valid_shape=[valid, WIDTH])
        total_row = pypto.cast(pypto.sum(x_tile * x_tile, -1, True), pypto.DT_FP32)
        pypto.assemble(total_row, [row, 0], out)


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
def good_kernel(
    x: pypto.Tensor([pypto.DYNAMIC, WIDTH], pypto.DT_FP16),
    out: pypto.Tensor([pypto.DYNAMIC, 1], pypto.DT_FP32),
):
    total = x.shape[0]
    for step in pypto.loop((total + ROWS - 1) // ROWS, name="ROWS", idx_name="step"):
        pypto.set_vec_tile_shapes(16, 512)
        row = step * ROWS
        valid = pypto.min(total - row, ROWS)
        x_tile = pypto.view(x, [ROWS, WIDTH], [row, 0], valid_shape=[valid, WIDTH])
        wide = pypto.cast(x_tile, pypto.DT_FP32)
        pypto.assemble(pypto.sum(wide * wide, -1, True), [row, 0], out)


def bad_wrapper(x):
    out = torch.empty((x.shape[0], 1), dtype=torch.float32, device=x.device)
    bad_kernel(x, out)
    return out


def good_wrapper(x):
    out = torch.empty((x.shape[0], 1), dtype=torch.float32, device=x.device)
    good_kernel(x, out)
    return out
