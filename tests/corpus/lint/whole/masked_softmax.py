"""Softmax over the first n columns of each row, n read at compile time; the rest becomes 0.

The mask is a comparison of a column index with n, not a product with 0, so that no 0 * inf can appear.
"""

import os

import torch
import torch_npu  # noqa: F401

import pypto

torch.npu.set_device(int(os.environ.get("TILE_FWK_DEVICE_ID", "0")))

B, N = 8, 64
NEG_BIG = -1.0e30


def _stable_softmax(scores):
    """exp(x - rowmax) / rowsum."""
    peak = scores.amax(-1, True)
    e = (scores - peak).exp()
    return e / e.sum(-1, True)


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
def masked_softmax_kernel(
    x: pypto.Tensor([pypto.DYNAMIC, N], pypto.DT_FP32),
    column: pypto.Tensor([1, N], pypto.DT_FP32),
    y: pypto.Tensor([pypto.DYNAMIC, N], pypto.DT_FP32),
    limit: float,
):
    pypto.set_vec_tile_shapes(B, N)
    total = x.shape[0]
    for i in pypto.loop(pypto.ceildiv(total, B), name="ROWS", idx_name="i"):
        rows = pypto.min(total - i * B, B)
        tile = pypto.view(x, [B, N], [i * B, 0], valid_shape=[rows, N])
        keep = pypto.lt(column, limit)
        shown = pypto.where(pypto.expand_clone(keep, [B, N], valid_shape=[rows, N]), tile, NEG_BIG)
        pypto.assemble(_stable_softmax(shown), [i * B, 0], y)


def masked_softmax_wrapper(x: torch.Tensor, limit: int) -> torch.Tensor:
    """x [T, 64] fp32, limit in 1..64; returns [T, 64] fp32."""
    column = torch.arange(N, dtype=torch.float32, device=x.device).view(1, N)
    y = torch.empty_like(x)
    masked_softmax_kernel(x, column, y, float(limit))
    return y
