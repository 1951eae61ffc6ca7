"""A weight per column and a number per row: out = x * weight [T, 64], total = its row sum [T, 1], both float32."""

import os

import pypto
import torch
import torch_npu  # noqa: F401  (registers the npu device)

torch.npu.set_device(int(os.environ.get("TILE_FWK_DEVICE_ID", "0")))

ROWS, WIDTH = 16, 64


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
def weighted_rows_kernel(
    x: pypto.Tensor([pypto.DYNAMIC, WIDTH], pypto.DT_FP32),
    weight: pypto.Tensor([1, WIDTH], pypto.DT_FP32),  # [W] has no rank for the tiles: the wrapper reshapes it
    out: pypto.Tensor([pypto.DYNAMIC, WIDTH], pypto.DT_FP32),
    total: pypto.Tensor([pypto.DYNAMIC, 1], pypto.DT_FP32),
):
    height = x.shape[0]
    for step in pypto.loop((height + ROWS - 1) // ROWS, name="ROWS", idx_name="step"):
        pypto.set_vec_tile_shapes(16, 64)
        row = step * ROWS
        valid = pypto.min(height - row, ROWS)
        x_tile = pypto.view(x, [ROWS, WIDTH], [row, 0], valid_shape=[valid, WIDTH])
        weight_row = pypto.view(weight, [1, WIDTH], [0, 0])  # after the tiles are set
        y_tile = x_tile * weight_row  # [1, W] is broadcast over the rows, without expand
        pypto.assemble(y_tile, [row, 0], out)
        pypto.assemble(pypto.sum(y_tile, -1, True), [row, 0], total)  # [ROWS, 1], valid [valid, 1]


def weighted_rows_wrapper(x, weight):
    """x: [T, 64] float32, weight: [64] float32, contiguous, T >= 1. Returns [T, 64] and [T, 1]."""
    out = torch.empty((x.shape[0], WIDTH), dtype=x.dtype, device=x.device)
    total = torch.empty((x.shape[0], 1), dtype=x.dtype, device=x.device)
    weighted_rows_kernel(x, weight.reshape(1, WIDTH), out, total)
    return out, total
