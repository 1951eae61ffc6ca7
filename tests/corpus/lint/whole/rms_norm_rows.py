"""Row-wise RMS normalisation, fp16 in and out, fp32 inside.

    y[r, :] = x[r, :] / sqrt(mean(x[r, :]^2) + eps) * gamma[0, :]

The number of rows is dynamic; the hidden size is fixed. One loop over tiles of rows, and the last tile is
narrowed by its valid shape, so that no padding row is ever written back.
"""

import os

import torch
import torch_npu  # noqa: F401  (registers the npu device)

import pypto

torch.npu.set_device(int(os.environ.get("TILE_FWK_DEVICE_ID", "0")))

HIDDEN = 256
ROWS = 16
EPS = 1e-6


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
def rms_norm_rows_kernel(
    x: pypto.Tensor([pypto.DYNAMIC, HIDDEN], pypto.DT_FP16),
    gamma: pypto.Tensor([1, HIDDEN], pypto.DT_FP16),
    y: pypto.Tensor([pypto.DYNAMIC, HIDDEN], pypto.DT_FP16),
):
    pypto.set_vec_tile_shapes(ROWS, HIDDEN)
    rows = x.shape[0]
    scale = pypto.cast(gamma, pypto.DT_FP32)
    for i in pypto.loop((rows + ROWS - 1) // ROWS, name="ROW_TILES", idx_name="i"):
        left = pypto.min(rows - i * ROWS, ROWS)
        tile = pypto.view(x, [ROWS, HIDDEN], [i * ROWS, 0], valid_shape=[left, HIDDEN])
        wide = pypto.cast(tile, pypto.DT_FP32)
        mean_square = pypto.sum(wide * wide, -1, keepdim=True) * (1.0 / HIDDEN)
        normed = wide * pypto.rsqrt(mean_square + EPS)
        out = pypto.cast(normed * scale, pypto.DT_FP16)
        pypto.assemble(out, [i * ROWS, 0], y)


def rms_norm_rows_wrapper(x: torch.Tensor, gamma: torch.Tensor) -> torch.Tensor:
    """Normalise the rows of x [T, 256] fp16 by gamma [256] fp16; returns [T, 256] fp16."""
    if x.dim() != 2 or x.shape[1] != HIDDEN:
        raise ValueError(f"x must be [T, {HIDDEN}], got {tuple(x.shape)}")
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    rms_norm_rows_kernel(x.contiguous(), gamma.reshape(1, HIDDEN), y)
    return y
