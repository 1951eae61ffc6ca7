"""Sigmoid on a ragged tile, written so that the valid shape survives: out = 1 / (1 + exp(-x))."""

import os

import pypto
import torch
import torch_npu  # noqa: F401  (registers the npu device)

torch.npu.set_device(int(os.environ.get("TILE_FWK_DEVICE_ID", "0")))

ROWS, WIDTH = 16, 64


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
def sigmoid_rows_kernel(
    x: pypto.Tensor([pypto.DYNAMIC, WIDTH], pypto.DT_FP32),
    out: pypto.Tensor([pypto.DYNAMIC, WIDTH], pypto.DT_FP32),
):
    count = x.shape[0]
    for step in pypto.loop((count + ROWS - 1) // ROWS, name="ROWS", idx_name="step"):
        pypto.set_vec_tile_shapes(16, 64)
        row = step * ROWS
        valid = pypto.min(count - row, ROWS)
        x_tile = pypto.view(x, [ROWS, WIDTH], [row, 0], valid_shape=[valid, WIDTH])
        ones = pypto.full([ROWS, WIDTH], 1.0, pypto.DT_FP32, valid_shape=[valid, WIDTH])
        pypto.assemble(ones / (pypto.exp(x_tile * -1.0) + 1.0), [row, 0], out)


def sigmoid_rows_wrapper(x):
    """x: [T, 64] float32, contiguous. Returns [T, 64]."""
    out = torch.empty((x.shape[0], WIDTH), dtype=x.dtype, device=x.device)
    sigmoid_rows_kernel(x, out)
    return out
