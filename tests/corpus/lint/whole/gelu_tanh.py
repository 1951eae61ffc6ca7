"""GELU (tanh form) for three dtypes: a factory makes the one JIT function per dtype and keeps it.

    gelu(x) = x * sigmoid(2u),  u = sqrt(2/pi) * (x + 0.044715 x^3)
"""

import functools
import os

import torch
import torch_npu  # noqa: F401

import pypto

torch.npu.set_device(int(os.environ.get("TILE_FWK_DEVICE_ID", "0")))

WIDTH = 128
TILE_ROWS = 32
TWO_SQRT_2_OVER_PI = 1.5957691216057308
CUBIC = 0.044715

_DTYPES = {
    torch.float16: pypto.DT_FP16,
    torch.bfloat16: pypto.DT_BF16,
    torch.float32: pypto.DT_FP32,
}


def _gelu(x):
    """GELU of one fp32 tile; two sign changes keep the exponent small on the right half."""
    two_u = (x * x * x * CUBIC + x) * TWO_SQRT_2_OVER_PI
    return x / (pypto.exp(two_u * -1.0) + 1.0)


@functools.lru_cache(maxsize=None)
def _build(dtype):
    """Compile-time variant of the kernel for one pypto dtype."""

    @pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
    def gelu_tanh_kernel(
        x: pypto.Tensor([pypto.DYNAMIC, WIDTH], dtype),
        y: pypto.Tensor([pypto.DYNAMIC, WIDTH], dtype),
    ):
        pypto.set_vec_tile_shapes(TILE_ROWS, WIDTH)
        rows = x.shape[0]
        for i in pypto.loop((rows + TILE_ROWS - 1) // TILE_ROWS, name="ROWS", idx_name="i"):
            valid = [pypto.min(rows - i * TILE_ROWS, TILE_ROWS), WIDTH]
            tile = pypto.view(x, [TILE_ROWS, WIDTH], [i * TILE_ROWS, 0], valid_shape=valid)
            if dtype == pypto.DT_FP32:
                pypto.assemble(_gelu(tile), [i * TILE_ROWS, 0], y)
            else:
                wide = _gelu(pypto.cast(tile, pypto.DT_FP32))
                pypto.assemble(pypto.cast(wide, dtype), [i * TILE_ROWS, 0], y)

    return gelu_tanh_kernel


def gelu_tanh_wrapper(x: torch.Tensor) -> torch.Tensor:
    """x [..., 128] in fp16, bf16 or fp32; same shape and dtype back."""
    if x.dtype not in _DTYPES:
        raise TypeError(f"gelu_tanh: {x.dtype} is not supported")
    flat = x.reshape(-1, WIDTH)
    y = torch.empty_like(flat)
    _build(_DTYPES[x.dtype])(flat, y)
    return y.reshape(x.shape)
