"""A dynamic axis whose length is no multiple of the tile: out = exp(x), x [T, 64] float32."""

import os

import pypto
import torch
import torch_npu  # noqa: F401  (registers the npu device)

torch.npu.set_device(int(os.environ.get("TILE_FWK_DEVICE_ID", "0")))

ROWS, WIDTH = 16, 64


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
def ragged_rows_kernel(
    x: pypto.Tensor([pypto.DYNAMIC, WIDTH], pypto.DT_FP32),
    out: pypto.Tensor([pypto.DYNAMIC, WIDTH], pypto.DT_FP32),
):
    total = x.shape[0]  # a symbolic scalar; + - * // and pypto.min work on it
    for step in pypto.loop((total + ROWS - 1) // ROWS, name="ROWS", idx_name="step"):
        pypto.set_vec_tile_shapes(16, 64)
        row = step * ROWS
        valid = pypto.min(total - row, ROWS)
        x_tile = pypto.view(x, [ROWS, WIDTH], [row, 0], valid_shape=[valid, WIDTH])
        pypto.assemble(pypto.exp(x_tile), [row, 0], out)  # exp inherits the valid shape, assemble clips to it


def ragged_rows_wrapper(x):
    """x: [T, 64] float32, contiguous, T >= 1. Returns [T, 64]."""
    out = torch.empty((x.shape[0], WIDTH), dtype=x.dtype, device=x.device)
    ragged_rows_kernel(x, out)
    return out
