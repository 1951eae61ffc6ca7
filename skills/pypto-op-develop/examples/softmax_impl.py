"""Softmax over the last axis: out[r, c] = exp(x[r, c] - max_c x[r, c]) / sum_c exp(x[r, c] - max_c x[r, c]).

One kernel, one launch, both axes dynamic. A row may be wider than one tile: the first pass carries the
running maximum and sum over the column tiles (online softmax), the second pass reads x again and writes.
"""

import os
from functools import lru_cache

import pypto
import torch
import torch_npu  # noqa: F401  (registers the npu device)

torch.npu.set_device(int(os.environ.get("TILE_FWK_DEVICE_ID", "0")))

# ---- Layer D: host constants -------------------------------------------------------------------------------

R_TILE = 16
"""Rows of x per step of the outer loop."""

C_TILE = 128
"""Columns of x per step of the inner loops."""

LOWEST = -3.4028234663852886e38
"""Lowest finite float32. The running maximum never goes below it, so a tile that holds only -inf adds
exp(-inf) = 0 instead of exp(-inf + inf) = NaN."""

PYPTO_DTYPES = {torch.float32: pypto.DT_FP32, torch.float16: pypto.DT_FP16, torch.bfloat16: pypto.DT_BF16}


# ---- Layer H: sub-kernels ----------------------------------------------------------------------------------


def pypto_load(x, row, col, rows, cols, dtype):
    """Return the tile of x at (row, col) as float32 [R_TILE, C_TILE], valid [rows, cols]."""
    pypto.set_vec_tile_shapes(16, 128)
    x_tile = pypto.view(x, [R_TILE, C_TILE], [row, col], valid_shape=[rows, cols])
    return x_tile if dtype == pypto.DT_FP32 else pypto.cast(x_tile, pypto.DT_FP32)


def pypto_read_state(state, rows):
    """Return a [R_TILE, 1] state tensor narrowed to its valid rows, which a read forgets."""
    return pypto.view(state, [R_TILE, 1], [0, 0], valid_shape=[rows, 1])


def pypto_first_tile(x_tile, tile_max, row_max, row_sum):
    """Start the carried state from the first column tile. A state write consumes its source."""
    row_sum[:] = pypto.sum(pypto.exp(x_tile - tile_max), -1, True)
    row_max[:] = tile_max


def pypto_next_tile(x_tile, tile_max, row_max, row_sum, rows):
    """Fold one more column tile into the carried maximum and sum."""
    old_max = pypto_read_state(row_max, rows)
    new_max = pypto.maximum(old_max, tile_max)
    old_part = pypto_read_state(row_sum, rows) * pypto.exp(old_max - new_max)
    row_sum[:] = old_part + pypto.sum(pypto.exp(x_tile - new_max), -1, True)
    row_max[:] = new_max


def pypto_normalise(x_tile, row_max, row_sum, rows, dtype):
    """Return exp(x_tile - row_max) / row_sum as `dtype`, valid as x_tile."""
    y_tile = pypto.exp(x_tile - pypto_read_state(row_max, rows)) / pypto_read_state(row_sum, rows)
    return y_tile if dtype == pypto.DT_FP32 else pypto.cast(y_tile, dtype, pypto.CastMode.CAST_RINT)


# ---- Layer I: kernel body ----------------------------------------------------------------------------------


def _softmax_kernel_impl(
    x,
    out,
    # <<< SNAPSHOT:SIG_IMPL
    # >>> SNAPSHOT:SIG_IMPL
    dtype,
):
    """For each row tile: one pass over the columns for maximum and sum, one pass that writes."""
    height, width = x.shape[0], x.shape[1]
    col_tiles = (width + C_TILE - 1) // C_TILE
    # <<< SNAPSHOT:before_nt_loop
    # >>> SNAPSHOT:before_nt_loop
    for r in pypto.loop((height + R_TILE - 1) // R_TILE, name="ROWS", idx_name="r"):
        row = r * R_TILE
        rows = pypto.min(height - row, R_TILE)
        row_max = pypto.tensor([R_TILE, 1], pypto.DT_FP32, "row_max")
        row_sum = pypto.tensor([R_TILE, 1], pypto.DT_FP32, "row_sum")
        for c in pypto.loop(col_tiles, name="REDUCE", idx_name="c"):
            cols = pypto.min(width - c * C_TILE, C_TILE)
            x_tile = pypto_load(x, row, c * C_TILE, rows, cols, dtype)
            tile_max = pypto.maximum(pypto.amax(x_tile, -1, True), LOWEST)
            if pypto.cond(pypto.is_loop_begin(c)):
                pypto_first_tile(x_tile, tile_max, row_max, row_sum)
            else:
                pypto_next_tile(x_tile, tile_max, row_max, row_sum, rows)
            # <<< SNAPSHOT:inside_nt_loop
            # >>> SNAPSHOT:inside_nt_loop
        for w in pypto.loop(col_tiles, name="WRITE", idx_name="w"):
            cols = pypto.min(width - w * C_TILE, C_TILE)
            x_tile = pypto_load(x, row, w * C_TILE, rows, cols, dtype)
            pypto.assemble(pypto_normalise(x_tile, row_max, row_sum, rows, dtype), [row, w * C_TILE], out)
    # <<< SNAPSHOT:after_nt_loop
    # >>> SNAPSHOT:after_nt_loop


# ---- Layer J: JIT entry ------------------------------------------------------------------------------------


@lru_cache(maxsize=None)
def _build_kernel(dtype):
    """Return the kernel for one element type."""

    @pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
    def softmax_kernel(
        x: pypto.Tensor([pypto.DYNAMIC, pypto.DYNAMIC], dtype),
        out: pypto.Tensor([pypto.DYNAMIC, pypto.DYNAMIC], dtype),
        # <<< SNAPSHOT:SIG_JIT
        # >>> SNAPSHOT:SIG_JIT
    ):
        _softmax_kernel_impl(
            x,
            out,
            # <<< SNAPSHOT:CALL_IMPL
            # >>> SNAPSHOT:CALL_IMPL
            dtype,
        )

    return softmax_kernel


# ---- Layer K: host wrapper ---------------------------------------------------------------------------------


def softmax_wrapper(x):
    """Return the softmax of `x` over its last axis.

    x: [R, C], float32, float16 or bfloat16, contiguous; R, C >= 1.
    Returns a new tensor [R, C] of x's dtype. Raises ValueError for anything else.
    """
    if x.dim() != 2 or x.shape[0] < 1 or x.shape[1] < 1:
        raise ValueError(f"x must be [R, C] with R, C >= 1, got {tuple(x.shape)}")
    if x.dtype not in PYPTO_DTYPES:
        raise ValueError(f"x must be float32, float16 or bfloat16, got {x.dtype}")
    if not x.is_contiguous():
        raise ValueError("x must be contiguous")
    out = torch.empty((x.shape[0], x.shape[1]), dtype=x.dtype, device=x.device)
    kernel = _build_kernel(PYPTO_DTYPES[x.dtype])
    # <<< SNAPSHOT:HOST_WRAPPER_INSPECT_ALLOC
    # >>> SNAPSHOT:HOST_WRAPPER_INSPECT_ALLOC
    kernel(
        x,
        out,
        # <<< SNAPSHOT:HOST_WRAPPER_INSPECT_PASS
        # >>> SNAPSHOT:HOST_WRAPPER_INSPECT_PASS
    )
    return out
