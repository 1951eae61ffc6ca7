"""[1, 1] against [R, W] expands two axes at once, which a pass refuses. Expand one axis first."""

import pypto
import torch

ROWS, WIDTH = 16, 32


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
def bad_kernel(
    x: pypto.Tensor([pypto.DYNAMIC, WIDTH], pypto.DT_FP32),
    scale: pypto.Tensor([1, 1], pypto.DT_FP32),
    out: pypto.Tensor([pypto.DYNAMIC, WIDTH], pypto.DT_FP32),
):
    total = x.shape[0]
    for step in pypto.loop((total + ROWS - 1) // ROWS, name="ROWS", idx_name="step"):
        pypto.set_vec_tile_shapes(16, 32)
        row = step * ROWS
        valid = pypto.min(total - row, ROWS)
        x_tile = pypto.view(x, [ROWS, WIDTH], [row, 0], valid_shape=[valid, WIDTH])
        one = pypto.view(scale, [1, 1], [0, 0])
        pypto.assemble(x_tile * one, [row, 0], out)


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
def good_kernel(
    x: pypto.Tensor([pypto.DYNAMIC, WIDTH], pypto.DT_FP32),
    scale: pypto.Tensor([1, 1], pypto.DT_FP32),
    out: pypto.Tensor([pypto.DYNAMIC, WIDTH], pypto.DT_FP32),
):
    total = x.shape[0]
    for step in pypto.loop((total + ROWS - 1) // ROWS, name="ROWS", idx_name="step"):
        pypto.set_vec_tile_shapes(16, 32)
        row = step * ROWS
        valid = pypto.min(total - row, ROWS)
        x_tile = pypto.view(x, [ROWS, WIDTH], [row, 0], valid_shape=[valid, WIDTH])
        one = pypto.expand_clone(pypto.view(scale, [1, 1], [0, 0]), [1, WIDTH])
        pypto.assemble(x_tile * one, [row, 0], out)


def bad_wrapper(x, scale):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    bad_kernel(x, scale, out)
    return out


def good_wrapper(x, scale):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    good_kernel(x, scale, out)
    return out
