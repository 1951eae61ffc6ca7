"""Several outputs of several dtypes in one launch: a + b in float32, a * b in float16."""

import os

import pypto
import torch
import torch_npu  # noqa: F401  (registers the npu device)

torch.npu.set_device(int(os.environ.get("TILE_FWK_DEVICE_ID", "0")))

ROWS, WIDTH = 16, 32


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
def two_outputs_kernel(
    a: pypto.Tensor([pypto.DYNAMIC, WIDTH], pypto.DT_FP32),
    b: pypto.Tensor([pypto.DYNAMIC, WIDTH], pypto.DT_FP32),
    total: pypto.Tensor([pypto.DYNAMIC, WIDTH], pypto.DT_FP32),
    product: pypto.Tensor([pypto.DYNAMIC, WIDTH], pypto.DT_FP16),
):
    count = a.shape[0]
    for step in pypto.loop((count + ROWS - 1) // ROWS, name="ROWS", idx_name="step"):
        pypto.set_vec_tile_shapes(16, 32)
        row = step * ROWS
        valid = [pypto.min(count - row, ROWS), WIDTH]
        a_tile = pypto.view(a, [ROWS, WIDTH], [row, 0], valid_shape=valid)
        b_tile = pypto.view(b, [ROWS, WIDTH], [row, 0], valid_shape=valid)
        pypto.assemble(a_tile + b_tile, [row, 0], total)
        pypto.assemble(pypto.cast(a_tile * b_tile, pypto.DT_FP16, pypto.CastMode.CAST_RINT), [row, 0], product)


def two_outputs_wrapper(a, b):
    """a, b: [T, 32] float32, contiguous. Returns (a + b, float16(a * b))."""
    total = torch.empty((a.shape[0], WIDTH), dtype=a.dtype, device=a.device)
    product = torch.empty((a.shape[0], WIDTH), dtype=torch.float16, device=a.device)
    two_outputs_kernel(a, b, total, product)
    return total, product
