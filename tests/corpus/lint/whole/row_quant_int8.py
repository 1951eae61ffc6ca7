"""Symmetric per-row int8 quantisation.

    scale[r] = max(|x[r, :]|, tiny) / 127,   q[r, :] = round(x[r, :] / scale[r])

Rounding goes FP32 -> INT32 -> FP16 -> INT8, the chain of casts that exists.
"""

import os

import torch
import torch_npu  # noqa: F401

import pypto

torch.npu.set_device(int(os.environ.get("TILE_FWK_DEVICE_ID", "0")))

WIDTH = 64
ROWS = 8
TINY = max(torch.finfo(torch.float32).tiny, 1e-12)
INT8_MAX = 127.0


def _to_int8(tile):
    bounded = pypto.maximum(pypto.minimum(tile, INT8_MAX), -INT8_MAX)
    whole = pypto.cast(bounded, pypto.DT_INT32, pypto.CastMode.CAST_RINT)
    half = pypto.cast(whole, pypto.DT_FP16)
    return pypto.cast(half, pypto.DT_INT8, pypto.CastMode.CAST_TRUNC)


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
def row_quant_int8_kernel(
    x: pypto.Tensor([pypto.DYNAMIC, WIDTH], pypto.DT_FP32),
    q: pypto.Tensor([pypto.DYNAMIC, WIDTH], pypto.DT_INT8),
    scale: pypto.Tensor([pypto.DYNAMIC, 1], pypto.DT_FP32),
    tiny: float,
):
    pypto.set_vec_tile_shapes(ROWS, WIDTH)
    total = x.shape[0]
    for r in pypto.loop(0, (total + ROWS - 1) // ROWS, 1, name="R", idx_name="r"):
        rows = pypto.min(total - r * ROWS, ROWS)
        tile = pypto.view(x, [ROWS, WIDTH], [r * ROWS, 0], valid_shape=[rows, WIDTH])
        peak = pypto.amax(pypto.abs(tile), -1, keepdim=True)
        step = pypto.maximum(peak, tiny) * (1.0 / INT8_MAX)
        pypto.assemble(_to_int8(tile / step), [r * ROWS, 0], q)
        pypto.assemble(step, [r * ROWS, 0], scale)


def row_quant_int8_wrapper(x: torch.Tensor):
    """x [T, 64] fp32; returns (q [T, 64] int8, scale [T, 1] fp32)."""
    q = torch.empty(x.shape, dtype=torch.int8, device=x.device)
    scale = x.new_empty((x.shape[0], 1))
    row_quant_int8_kernel(x, q, scale, TINY)
    return q, scale
