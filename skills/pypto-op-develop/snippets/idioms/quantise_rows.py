"""Symmetric int8 per row: clip in float32, then FP32 -> INT32 (RINT) -> FP16 -> INT8 (TRUNC)."""

import os

import pypto
import torch
import torch_npu  # noqa: F401  (registers the npu device)

torch.npu.set_device(int(os.environ.get("TILE_FWK_DEVICE_ID", "0")))

ROWS, WIDTH = 16, 64


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
def quantise_rows_kernel(
    x: pypto.Tensor([pypto.DYNAMIC, WIDTH], pypto.DT_FP32),
    codes: pypto.Tensor([pypto.DYNAMIC, WIDTH], pypto.DT_INT8),
    scales: pypto.Tensor([pypto.DYNAMIC, 1], pypto.DT_FP32),
):
    count = x.shape[0]
    for step in pypto.loop((count + ROWS - 1) // ROWS, name="ROWS", idx_name="step"):
        pypto.set_vec_tile_shapes(16, 64)
        row = step * ROWS
        valid = pypto.min(count - row, ROWS)
        x_tile = pypto.view(x, [ROWS, WIDTH], [row, 0], valid_shape=[valid, WIDTH])
        scale = pypto.maximum(pypto.amax(pypto.abs(x_tile), -1, True), 1e-12) * (1.0 / 127.0)  # [ROWS, 1]
        wide = pypto.minimum(pypto.maximum(x_tile / scale, -127.0), 127.0)  # no cast saturates for you
        whole = pypto.cast(wide, pypto.DT_INT32, pypto.CastMode.CAST_RINT)
        narrow = pypto.cast(pypto.cast(whole, pypto.DT_FP16), pypto.DT_INT8, pypto.CastMode.CAST_TRUNC)
        pypto.assemble(narrow, [row, 0], codes)
        pypto.assemble(scale, [row, 0], scales)


def quantise_rows_wrapper(x):
    """x: [T, 64] float32, contiguous. Returns (int8 codes [T, 64], float32 scales [T, 1])."""
    codes = torch.empty((x.shape[0], WIDTH), dtype=torch.int8, device=x.device)
    scales = torch.empty((x.shape[0], 1), dtype=torch.float32, device=x.device)
    quantise_rows_kernel(x, codes, scales)
    return codes, scales
