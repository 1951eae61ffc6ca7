"""0 * inf is NaN: mask with where, and with a finite lowest value instead of -inf before a maximum."""

import pypto
import torch

ROWS, WIDTH = 16, 32


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
def bad_kernel(
    x: pypto.Tensor([pypto.DYNAMIC, WIDTH], pypto.DT_FP32),
    keep: pypto.Tensor([pypto.DYNAMIC, WIDTH], pypto.DT_FP32),
    out: pypto.Tensor([pypto.DYNAMIC, WIDTH], pypto.DT_FP32),
):
    total = x.shape[0]
    for step in pypto.loop((total + ROWS - 1) // ROWS, name="ROWS", idx_name="step"):
        pypto.set_vec_tile_shapes(16, 32)
        row = step * ROWS
        valid = pypto.min(total - row, ROWS)
        x_tile = pypto.view(x, [ROWS, WIDTH], [row, 0], valid_shape=[valid, WIDTH])
        k_tile = pypto.view(keep, [ROWS, WIDTH], [row, 0], valid_shape=[valid, WIDTH])
        pypto.assemble(pypto.exp(x_tile) * k_tile, [row, 0], out)


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
def good_kernel(
    x: pypto.Tensor([pypto.DYNAMIC, WIDTH], pypto.DT_FP32),
    keep: pypto.Tensor([pypto.DYNAMIC, WIDTH], pypto.DT_FP32),
    out: pypto.Tensor([pypto.DYNAMIC, WIDTH], pypto.DT_FP32),
):
    total = x.shape[0]
    for step in pypto.loop((total + ROWS - 1) // ROWS, name="ROWS", idx_name="step"):
        pypto.set_vec_tile_shapes(16, 32)
        row = step * ROWS
        valid = pypto.min(total - row, ROWS)
        x_tile = pypto.view(x, [ROWS, WIDTH], [row, 0], valid_shape=[valid, WIDTH])
        k_tile = pypto.view(keep, [ROWS, WIDTH], [row, 0], valid_shape=[valid, WIDTH])
        pypto.assemble(pypto.where(pypto.gt(k_tile, 0.5), pypto.exp(x_tile), 0.0), [row, 0], out)


def bad_wrapper(x, keep):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    bad_kernel(x, keep, out)
    return out


def good_wrapper(x, keep):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    good_kernel(x, keep, out)
    return out
