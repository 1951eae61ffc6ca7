"""A product on the cube unit with a vector tail: out = x w^T + bias, x [T, K] and w [N, K] float16, out float32."""

import os

import pypto
import torch
import torch_npu  # noqa: F401  (registers the npu device)

torch.npu.set_device(int(os.environ.get("TILE_FWK_DEVICE_ID", "0")))

ROWS, K, N = 64, 48, 96


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
def matmul_rows_kernel(
    x: pypto.Tensor([pypto.DYNAMIC, K], pypto.DT_FP16),
    w: pypto.Tensor([N, K], pypto.DT_FP16),
    bias: pypto.Tensor([1, N], pypto.DT_FP32),
    out: pypto.Tensor([pypto.DYNAMIC, N], pypto.DT_FP32),
):
    total = x.shape[0]
    for step in pypto.loop((total + ROWS - 1) // ROWS, name="ROWS", idx_name="step"):
        pypto.set_cube_tile_shapes([128, 128], [128, 128], [128, 128])  # [L0, L1] for m, k, n
        pypto.set_vec_tile_shapes(64, 96)  # matmul needs both kinds
        row = step * ROWS
        x_tile = pypto.view(x, [ROWS, K], [row, 0], valid_shape=[pypto.min(total - row, ROWS), K])
        w_all = pypto.view(w, [N, K], [0, 0])
        product = pypto.matmul(x_tile, w_all, pypto.DT_FP32, b_trans=True)  # out dtype is the third positional
        pypto.assemble(product + pypto.view(bias, [1, N], [0, 0]), [row, 0], out)


def matmul_rows_wrapper(x, w, bias):
    """x: [T, 48], w: [96, 48] float16, bias: [96] float32, contiguous. Returns [T, 96] float32."""
    out = torch.empty((x.shape[0], N), dtype=torch.float32, device=x.device)
    matmul_rows_kernel(x, w, bias.reshape(1, N), out)
    return out
