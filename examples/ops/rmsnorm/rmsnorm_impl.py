"""RMSNorm over the last axis: out[t, h] = x[t, h] * weight[h] / sqrt(mean_h(x[t, h]^2) + eps).

One kernel, one launch. The token axis T is dynamic; the hidden size H is fixed per build, because it is a
constant of the model. 16-bit inputs are widened to float32 before the square and rounded once, at the end.
"""

import os
from functools import lru_cache

import pypto
import torch
import torch_npu  # noqa: F401  (registers the npu device)

torch.npu.set_device(int(os.environ.get("TILE_FWK_DEVICE_ID", "0")))

# ---- Layer D: host constants -------------------------------------------------------------------------------

T_TILE = 16
"""Rows of x per loop step; also the row tile of the vector unit."""

PYPTO_DTYPES = {torch.float32: pypto.DT_FP32, torch.float16: pypto.DT_FP16, torch.bfloat16: pypto.DT_BF16}


# ---- Layer H: sub-kernels ----------------------------------------------------------------------------------


def pypto_widen(tile, dtype):
    """Return `tile` as float32; a tile that is float32 already comes back as it is."""
    return tile if dtype == pypto.DT_FP32 else pypto.cast(tile, pypto.DT_FP32)


def pypto_normalise(x_tile, weight_row, eps, hidden, dtype):
    """Normalise the rows of one tile.

    x_tile: [T_TILE, H] of `dtype`, valid [rows, H]. weight_row: [1, H] of `dtype`.
    Returns [T_TILE, H] of `dtype`; its valid shape is inherited from x_tile.
    """
    pypto.set_vec_tile_shapes(16, 512)
    x_wide = pypto_widen(x_tile, dtype)  # [T_TILE, H]
    mean_square = pypto.sum(x_wide * x_wide, -1, True) * (1.0 / hidden)  # [T_TILE, 1]
    inverse_rms = pypto.rsqrt(mean_square + eps)  # [T_TILE, 1]
    y_wide = x_wide * inverse_rms * pypto_widen(weight_row, dtype)  # [T_TILE, H]
    return y_wide if dtype == pypto.DT_FP32 else pypto.cast(y_wide, dtype, pypto.CastMode.CAST_RINT)


# ---- Layer I: kernel body ----------------------------------------------------------------------------------


def _rmsnorm_kernel_impl(
    x,
    weight,
    out,
    # <<< SNAPSHOT:SIG_IMPL
    # >>> SNAPSHOT:SIG_IMPL
    eps,
    hidden,
    dtype,
):
    """Walk the token axis in steps of T_TILE; the last step is short when T is no multiple of it."""
    tokens = x.shape[0]
    # <<< SNAPSHOT:before_nt_loop
    # >>> SNAPSHOT:before_nt_loop
    for step in pypto.loop((tokens + T_TILE - 1) // T_TILE, name="TOKENS", idx_name="step"):
        row = step * T_TILE
        rows = pypto.min(tokens - row, T_TILE)
        x_tile = pypto.view(x, [T_TILE, hidden], [row, 0], valid_shape=[rows, hidden])
        weight_row = pypto.view(weight, [1, hidden], [0, 0])
        y_tile = pypto_normalise(x_tile, weight_row, eps, hidden, dtype)
        # <<< SNAPSHOT:inside_nt_loop
        # >>> SNAPSHOT:inside_nt_loop
        pypto.assemble(y_tile, [row, 0], out)
    # <<< SNAPSHOT:after_nt_loop
    # >>> SNAPSHOT:after_nt_loop


# ---- Layer J: JIT entry ------------------------------------------------------------------------------------


@lru_cache(maxsize=None)
def _build_kernel(dtype, hidden):
    """Return the kernel for one element type and one hidden size."""

    @pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
    def rmsnorm_kernel(
        x: pypto.Tensor([pypto.DYNAMIC, hidden], dtype),
        weight: pypto.Tensor([1, hidden], dtype),
        out: pypto.Tensor([pypto.DYNAMIC, hidden], dtype),
        # <<< SNAPSHOT:SIG_JIT
        # >>> SNAPSHOT:SIG_JIT
        eps: float,
    ):
        _rmsnorm_kernel_impl(
            x,
            weight,
            out,
            # <<< SNAPSHOT:CALL_IMPL
            # >>> SNAPSHOT:CALL_IMPL
            eps,
            hidden,
            dtype,
        )

    return rmsnorm_kernel


# ---- Layer K: host wrapper ---------------------------------------------------------------------------------


def _check(x, weight, eps):
    """Raise ValueError for arguments that the kernel was not built for."""
    if x.dim() != 2 or x.shape[0] < 1 or x.shape[1] < 1:
        raise ValueError(f"x must be [T, H] with T, H >= 1, got {tuple(x.shape)}")
    if tuple(weight.shape) != (x.shape[1],):
        raise ValueError(f"weight must be [{x.shape[1]}], got {tuple(weight.shape)}")
    if x.dtype not in PYPTO_DTYPES or weight.dtype != x.dtype:
        raise ValueError(f"x and weight must share a floating dtype, got {x.dtype} and {weight.dtype}")
    if x.shape[1] % 16 != 0:
        raise ValueError(f"H must be a multiple of 16 (32-byte rows), got {x.shape[1]}")
    if not (x.is_contiguous() and weight.is_contiguous()):
        raise ValueError("x and weight must be contiguous")
    if not eps > 0.0:
        raise ValueError(f"eps must be positive, got {eps}")


def rmsnorm_wrapper(x, weight, eps):
    """Return RMSNorm of `x`.

    x: [T, H], float32, float16 or bfloat16, contiguous; T >= 1, H a multiple of 16.
    weight: [H], dtype of x. eps: float > 0, added to the mean square.
    Returns a new tensor [T, H] of x's dtype. Raises ValueError for anything else.
    """
    _check(x, weight, eps)
    hidden = x.shape[1]
    out = torch.empty((x.shape[0], hidden), dtype=x.dtype, device=x.device)
    kernel = _build_kernel(PYPTO_DTYPES[x.dtype], hidden)
    # <<< SNAPSHOT:HOST_WRAPPER_INSPECT_ALLOC
    # >>> SNAPSHOT:HOST_WRAPPER_INSPECT_ALLOC
    kernel(
        x,
        weight.reshape(1, hidden),
        out,
        # <<< SNAPSHOT:HOST_WRAPPER_INSPECT_PASS
        # >>> SNAPSHOT:HOST_WRAPPER_INSPECT_PASS
        float(eps),
    )
    return out
