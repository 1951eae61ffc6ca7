"""One literal jit in a cached factory: a kernel per (dtype, width), one launch per call."""

import os
from functools import lru_cache

import pypto
import torch
import torch_npu  # noqa: F401  (registers the npu device)

torch.npu.set_device(int(os.environ.get("TILE_FWK_DEVICE_ID", "0")))

ROWS = 16
DTYPES = {torch.float32: pypto.DT_FP32, torch.float16: pypto.DT_FP16, torch.bfloat16: pypto.DT_BF16}


def pypto_widen(tile, dtype):
    """Return `tile` in float32; the valid shape is inherited."""
    return tile if dtype == pypto.DT_FP32 else pypto.cast(tile, pypto.DT_FP32)


def _several_dtypes_kernel_impl(x, out, factor, width, dtype):
    """Graph code in a helper: plain Python runs it, so `if dtype == ...` is decided while the graph is built."""
    total = x.shape[0]
    for step in pypto.loop((total + ROWS - 1) // ROWS, name="ROWS", idx_name="step"):
        pypto.set_vec_tile_shapes(16, 64)
        row = step * ROWS
        x_tile = pypto.view(x, [ROWS, width], [row, 0], valid_shape=[pypto.min(total - row, ROWS), width])
        y_wide = pypto_widen(x_tile, dtype) * factor
        y_tile = y_wide if dtype == pypto.DT_FP32 else pypto.cast(y_wide, dtype, pypto.CastMode.CAST_RINT)
        pypto.assemble(y_tile, [row, 0], out)


@lru_cache(maxsize=None)
def _build_kernel(dtype, width):
    """Return the kernel for one element type and one width."""

    @pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
    def several_dtypes_kernel(
        x: pypto.Tensor([pypto.DYNAMIC, width], dtype),
        out: pypto.Tensor([pypto.DYNAMIC, width], dtype),
        factor: float,  # scalars follow all tensors
    ):
        _several_dtypes_kernel_impl(x, out, factor, width, dtype)

    return several_dtypes_kernel


def several_dtypes_wrapper(x, factor):
    """x: [T, W] float32, float16 or bfloat16, contiguous, W a multiple of 16. Returns x * factor, rounded once."""
    out = torch.empty((x.shape[0], x.shape[1]), dtype=x.dtype, device=x.device)
    _build_kernel(DTYPES[x.dtype], x.shape[1])(x, out, float(factor))
    return out
