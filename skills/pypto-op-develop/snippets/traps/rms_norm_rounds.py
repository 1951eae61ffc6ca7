"""`pypto.rms_norm` returns the input's dtype: a float32 weight is then applied to rounded values."""

import pypto
import torch

ROWS, WIDTH = 16, 32


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
def bad_kernel(
    x: pypto.Tensor([pypto.DYNAMIC, WIDTH], pypto.DT_FP16),
    weight: pypto.Tensor([1, WIDTH], pypto.DT_FP32),
    out: pypto.Tensor([pypto.DYNAMIC, WIDTH], pypto.DT_FP32),
):
    total = x.shape[0]
    for step in pypto.loop((total + ROWS - 1) // ROWS, name="ROWS", idx_name="step"):
        pypto.set_vec_tile_shapes(16, 32)
        row = step * ROWS
        valid = pypto.min(total - row, ROWS)
        x_tile = pypto.view(x, [ROWS, WIDTH], [row, 0], valid_shape=[valid, WIDTH])
        rounded = pypto.cast(pypto.rms_norm(x_tile), pypto.DT_FP32)
        pypto.assemble(rounded * pypto.view(weight, [1, WIDTH], [0, 0]), [row, 0], out)


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
def good_kernel(
    x: pypto.Tensor([pypto.DYNAMIC, WIDTH], pypto.DT_FP16),
    weight: pypto.Tensor([1, WIDTH], pypto.DT_FP32),
    out: pypto.Tensor([pypto.DYNAMIC, WIDTH], pypto.DT_FP32),
):
    total = x.shape[0]
    for step in pypto.loop((total + ROWS - 1) // ROWS, name="ROWS", idx_name="step"):
        pypto.set_vec_tile_shapes(16, 32)
        row = step * ROWS
        valid = pypto.min(total - row, ROWS)
        x_tile = pypto.view(x, [ROWS, WIDTH], [row, 0], valid_shape=[valid, WIDTH])
        wide = pypto.cast(x_tile, pypto.DT_FP32)
        root = pypto.rsqrt(pypto.sum(wide * wide, -1, True) * (1.0 / WIDTH) + 1e-6)
        pypto.assemble(wide * root * pypto.view(weight, [1, WIDTH], [0, 0]), [row, 0], out)


def bad_wrapper(x, weight):
    out = torch.empty(x.shape, dtype=torch.float32, device=x.device)
    bad_kernel(x, weight, out)
    return out


def good_wrapper(x, weight):
    out = torch.empty(x.shape, dtype=torch.float32, device=x.device)
    good_kernel(x, weight, out)
    return out
