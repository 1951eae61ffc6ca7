"""Matmul, bias and GELU in one kernel: out = gelu(x w + bias), tanh form.

One kernel, one launch. The token axis M is dynamic; K and N are fixed per build, because they are constants of
the model. The product and everything after it stay in float32 on the chip; the result is rounded once, at the end.
"""

import os
from functools import lru_cache

import pypto
import torch
import torch_npu  # noqa: F401  (registers the npu device)

torch.npu.set_device(int(os.environ.get("TILE_FWK_DEVICE_ID", "0")))

# ---- Layer D: host constants -------------------------------------------------------------------------------

M_TILE = 128
"""Rows of x per loop step."""

N_TILE = 128
"""Columns of w per loop step."""

GELU_SLOPE = 1.5957691216057308
"""2 sqrt(2 / pi): the tanh form of GELU is z sigmoid(GELU_SLOPE (z + GELU_CUBE z^3))."""

GELU_CUBE = 0.044715

PYPTO_DTYPES = {torch.float32: pypto.DT_FP32, torch.float16: pypto.DT_FP16, torch.bfloat16: pypto.DT_BF16}


# ---- Layer H: sub-kernels ----------------------------------------------------------------------------------


def pypto_linear(x_tile, w_tile, bias_row, dtype):
    """Return x w + bias as float32.

    x_tile: [M_TILE, K], valid [rows, K]. w_tile: [K, N_TILE], valid [K, cols]. bias_row: [1, N_TILE], valid
    [1, cols]. Returns [M_TILE, N_TILE], valid [rows, cols].
    """
    pypto.set_cube_tile_shapes([128, 128], [128, 128], [128, 128])
    pypto.set_vec_tile_shapes(64, 128)
    product = pypto.matmul(x_tile, w_tile, pypto.DT_FP32)
    bias_wide = bias_row if dtype == pypto.DT_FP32 else pypto.cast(bias_row, pypto.DT_FP32)
    return product + bias_wide


def pypto_gelu(z):
    """Return GELU of `z`, float32 [M_TILE, N_TILE], as z / (1 + exp(-2u)): no 1 + tanh(u) that cancels."""
    cubic = (z * z * GELU_CUBE + 1.0) * z  # z + 0.044715 z^3
    return z / (pypto.exp(cubic * -GELU_SLOPE) + 1.0)


# ---- Layer I: kernel body ----------------------------------------------------------------------------------


def _matmul_bias_gelu_kernel_impl(
    x,
    w,
    bias,
    out,
    # <<< SNAPSHOT:SIG_IMPL
    # >>> SNAPSHOT:SIG_IMPL
    inner,
    width,
    dtype,
):
    """Walk the tiles of `out`; the last row tile and the last column tile may be short."""
    tokens = x.shape[0]
    # <<< SNAPSHOT:before_nt_loop
    # >>> SNAPSHOT:before_nt_loop
    for i in pypto.loop((tokens + M_TILE - 1) // M_TILE, name="ROWS", idx_name="i"):
        rows = pypto.min(tokens - i * M_TILE, M_TILE)
        for j in pypto.loop((width + N_TILE - 1) // N_TILE, name="COLUMNS", idx_name="j"):
            cols = pypto.min(width - j * N_TILE, N_TILE)
            x_tile = pypto.view(x, [M_TILE, inner], [i * M_TILE, 0], valid_shape=[rows, inner])
            w_tile = pypto.view(w, [inner, N_TILE], [0, j * N_TILE], valid_shape=[inner, cols])
            bias_row = pypto.view(bias, [1, N_TILE], [0, j * N_TILE], valid_shape=[1, cols])
            y_tile = pypto_gelu(pypto_linear(x_tile, w_tile, bias_row, dtype))
            if dtype != pypto.DT_FP32:
                y_tile = pypto.cast(y_tile, dtype, pypto.CastMode.CAST_RINT)
            # <<< SNAPSHOT:inside_nt_loop
            # >>> SNAPSHOT:inside_nt_loop
            pypto.assemble(y_tile, [i * M_TILE, j * N_TILE], out)
    # <<< SNAPSHOT:after_nt_loop
    # >>> SNAPSHOT:after_nt_loop


# ---- Layer J: JIT entry ------------------------------------------------------------------------------------


@lru_cache(maxsize=None)
def _build_kernel(dtype, inner, width):
    """Return the kernel for one element type, inner size and width."""

    @pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
    def matmul_bias_gelu_kernel(
        x: pypto.Tensor([pypto.DYNAMIC, inner], dtype),
        w: pypto.Tensor([inner, width], dtype),
        bias: pypto.Tensor([1, width], dtype),
        out: pypto.Tensor([pypto.DYNAMIC, width], dtype),
        # <<< SNAPSHOT:SIG_JIT
        # >>> SNAPSHOT:SIG_JIT
    ):
        _matmul_bias_gelu_kernel_impl(
            x,
            w,
            bias,
            out,
            # <<< SNAPSHOT:CALL_IMPL
            # >>> SNAPSHOT:CALL_IMPL
            inner,
            width,
            dtype,
        )

    return matmul_bias_gelu_kernel


# ---- Layer K: host wrapper ---------------------------------------------------------------------------------


def _check(x, w, bias):
    """Raise ValueError for arguments that the kernel was not built for."""
    if x.dim() != 2 or w.dim() != 2 or 0 in x.shape or 0 in w.shape:
        raise ValueError(f"x and w must be [M, K] and [K, N] and not empty, got {x.shape} and {w.shape}")
    if w.shape[0] != x.shape[1] or tuple(bias.shape) != (w.shape[1],):
        raise ValueError(f"w must be [K, N] and bias [N] for x [M, K], got {x.shape}, {w.shape}, {bias.shape}")
    if x.dtype not in PYPTO_DTYPES or w.dtype != x.dtype or bias.dtype != x.dtype:
        raise ValueError(f"x, w, bias must share a floating dtype, got {x.dtype}, {w.dtype}, {bias.dtype}")
    if x.shape[1] % 16 != 0 or w.shape[1] % 16 != 0:
        raise ValueError(f"K and N must be multiples of 16, got {x.shape[1]} and {w.shape[1]}")
    if not (x.is_contiguous() and w.is_contiguous() and bias.is_contiguous()):
        raise ValueError("x, w, bias must be contiguous")


def matmul_bias_gelu_wrapper(x, w, bias):
    """Return gelu(x w + bias), GELU in its tanh form.

    x: [M, K]. w: [K, N]. bias: [N]. One dtype of float32, float16, bfloat16, contiguous; M >= 1; K and N
    multiples of 16. Returns a new tensor [M, N] of that dtype. Raises ValueError for anything else.
    """
    _check(x, w, bias)
    out = torch.empty((x.shape[0], w.shape[1]), dtype=x.dtype, device=x.device)
    kernel = _build_kernel(PYPTO_DTYPES[x.dtype], x.shape[1], w.shape[1])
    # <<< SNAPSHOT:HOST_WRAPPER_INSPECT_ALLOC
    # >>> SNAPSHOT:HOST_WRAPPER_INSPECT_ALLOC
    kernel(
        x,
        w,
        bias.reshape(1, w.shape[1]),
        out,
        # <<< SNAPSHOT:HOST_WRAPPER_INSPECT_PASS
        # >>> SNAPSHOT:HOST_WRAPPER_INSPECT_PASS
    )
    return out
