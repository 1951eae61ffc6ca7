"""FlashAttention forward: out = softmax(q k^T / sqrt(D)) v and lse = logsumexp(q k^T / sqrt(D)), per head.

One kernel, one launch. Heads (BH) and sequence length (S) are dynamic; head size D and the causal flag are
fixed per build. The score matrix never leaves the chip: each query tile carries its running maximum, sum and
accumulator over the key tiles (online softmax), and is written once, after the last of them. Under the causal
flag a query tile stops at the diagonal tile, and only that tile is masked.
"""

import math
import os
from functools import lru_cache

import pypto
import torch
import torch_npu  # noqa: F401  (registers the npu device)

torch.npu.set_device(int(os.environ.get("TILE_FWK_DEVICE_ID", "0")))

# ---- Layer D: host constants -------------------------------------------------------------------------------

S_TILE = 128
"""Rows of q, and rows of k and v, per loop step. Both are equal, so the diagonal runs through whole tiles."""

LOWEST = -3.4028234663852886e38
"""Lowest finite float32, the score of a masked pair; -inf would turn 0 * inf into NaN on the way."""

PYPTO_DTYPES = {torch.float32: pypto.DT_FP32, torch.float16: pypto.DT_FP16, torch.bfloat16: pypto.DT_BF16}


# ---- Layer H: sub-kernels ----------------------------------------------------------------------------------


def pypto_load(source, head, row, rows, head_dim):
    """Return rows [row, row + S_TILE) of one head as [S_TILE, D], valid [rows, D]."""
    pypto.set_vec_tile_shapes(1, 64, 128)
    tile = pypto.view(source, [1, S_TILE, head_dim], [head, row, 0], valid_shape=[1, rows, head_dim])
    return pypto.reshape(tile, [S_TILE, head_dim], valid_shape=[rows, head_dim])


def pypto_scores(q_tile, k_tile, scale):
    """Return scale * q k^T as float32 [S_TILE, S_TILE], valid [rows of q, rows of k]."""
    pypto.set_cube_tile_shapes([128, 128], [128, 128], [128, 128])
    pypto.set_vec_tile_shapes(64, 128)
    return pypto.matmul(q_tile, k_tile, pypto.DT_FP32, b_trans=True) * scale


def pypto_mask_diagonal(scores, rows, cols):
    """Return `scores` of a diagonal tile with every pair (query, later key) set to LOWEST."""
    pypto.set_vec_tile_shapes(128)
    index = pypto.arange(0.0, 128.0, 1.0)  # [S_TILE]
    pypto.set_vec_tile_shapes(64, 128)
    query = pypto.expand_clone(pypto.reshape(index, [S_TILE, 1]), [S_TILE, S_TILE])
    keep = pypto.ge(query, pypto.reshape(index, [1, S_TILE]))  # [S_TILE, S_TILE] bool
    keep = pypto.view(keep, [S_TILE, S_TILE], [0, 0], valid_shape=[rows, cols])
    return pypto.where(keep, scores, LOWEST)


def pypto_weigh(weights, v_tile, dtype):
    """Return weights v as float32 [S_TILE, D]; the cube unit takes the weights in v's dtype."""
    pypto.set_cube_tile_shapes([128, 128], [128, 128], [128, 128])
    if dtype != pypto.DT_FP32:
        weights = pypto.cast(weights, dtype, pypto.CastMode.CAST_RINT)
    return pypto.matmul(weights, v_tile, pypto.DT_FP32)


def pypto_read_state(state, rows, width):
    """Return a [S_TILE, width] state tensor narrowed to its valid rows, which a read forgets."""
    return pypto.view(state, [S_TILE, width], [0, 0], valid_shape=[rows, width])


def pypto_first_tile(scores, v_tile, row_max, row_sum, acc, dtype):
    """Start the carried state from the first key tile. A state write comes last: it consumes its source."""
    tile_max = pypto.amax(scores, -1, True)  # [S_TILE, 1]
    weights = pypto.exp(scores - tile_max)  # [S_TILE, S_TILE]
    acc[:] = pypto_weigh(weights, v_tile, dtype)
    row_sum[:] = pypto.sum(weights, -1, True)
    row_max[:] = tile_max


def pypto_next_tile(scores, v_tile, row_max, row_sum, acc, rows, head_dim, dtype):
    """Fold one more key tile into the carried maximum, sum and accumulator."""
    old_max = pypto_read_state(row_max, rows, 1)
    new_max = pypto.maximum(old_max, pypto.amax(scores, -1, True))  # [S_TILE, 1]
    decay = pypto.exp(old_max - new_max)  # [S_TILE, 1]
    weights = pypto.exp(scores - new_max)  # [S_TILE, S_TILE]
    acc[:] = pypto_read_state(acc, rows, head_dim) * decay + pypto_weigh(weights, v_tile, dtype)
    row_sum[:] = pypto_read_state(row_sum, rows, 1) * decay + pypto.sum(weights, -1, True)
    row_max[:] = new_max


def pypto_store(row_max, row_sum, acc, out, lse, head, row, rows, head_dim, dtype):
    """Write acc / row_sum to `out` and row_max + log(row_sum) to `lse`, valid rows only."""
    total = pypto_read_state(row_sum, rows, 1)
    out_tile = pypto_read_state(acc, rows, head_dim) / total  # [S_TILE, D]
    if dtype != pypto.DT_FP32:
        out_tile = pypto.cast(out_tile, dtype, pypto.CastMode.CAST_RINT)
    lse_tile = pypto_read_state(row_max, rows, 1) + pypto.log(total)  # [S_TILE, 1]
    pypto.set_vec_tile_shapes(1, 64, 128)
    out_tile = pypto.reshape(out_tile, [1, S_TILE, head_dim], valid_shape=[1, rows, head_dim])
    lse_tile = pypto.reshape(lse_tile, [1, S_TILE, 1], valid_shape=[1, rows, 1])
    pypto.assemble(out_tile, [head, row, 0], out)
    pypto.assemble(lse_tile, [head, row, 0], lse)


# ---- Layer I: kernel body ----------------------------------------------------------------------------------


def _flash_attention_fwd_kernel_impl(
    q,
    k,
    v,
    out,
    lse,
    # <<< SNAPSHOT:SIG_IMPL
    # >>> SNAPSHOT:SIG_IMPL
    scale,
    head_dim,
    causal,
    dtype,
):
    """For each head and query tile: fold the key tiles into the state, then write once."""
    heads, length = q.shape[0], q.shape[1]
    tiles = (length + S_TILE - 1) // S_TILE
    for head in pypto.loop(heads, name="HEADS", idx_name="head"):
        for i in pypto.loop(tiles, name="QUERIES", idx_name="i"):
            rows = pypto.min(length - i * S_TILE, S_TILE)
            row_max = pypto.tensor([S_TILE, 1], pypto.DT_FP32, "row_max")
            row_sum = pypto.tensor([S_TILE, 1], pypto.DT_FP32, "row_sum")
            acc = pypto.tensor([S_TILE, head_dim], pypto.DT_FP32, "acc")
            # <<< SNAPSHOT:before_nt_loop
            # >>> SNAPSHOT:before_nt_loop
            for j in pypto.loop(i + 1 if causal else tiles, name="KEYS", idx_name="j"):
                cols = pypto.min(length - j * S_TILE, S_TILE)
                q_tile = pypto_load(q, head, i * S_TILE, rows, head_dim)
                k_tile = pypto_load(k, head, j * S_TILE, cols, head_dim)
                v_tile = pypto_load(v, head, j * S_TILE, cols, head_dim)
                scores = pypto_scores(q_tile, k_tile, scale)
                if causal:
                    if pypto.cond(pypto.is_loop_end(j)):  # the diagonal tile: j == i
                        scores = pypto_mask_diagonal(scores, rows, cols)
                if pypto.cond(pypto.is_loop_begin(j)):
                    pypto_first_tile(scores, v_tile, row_max, row_sum, acc, dtype)
                else:
                    pypto_next_tile(scores, v_tile, row_max, row_sum, acc, rows, head_dim, dtype)
                # <<< SNAPSHOT:inside_nt_loop
                # >>> SNAPSHOT:inside_nt_loop
                if pypto.cond(pypto.is_loop_end(j)):
                    pypto_store(row_max, row_sum, acc, out, lse, head, i * S_TILE, rows, head_dim, dtype)
            # <<< SNAPSHOT:after_nt_loop
            # >>> SNAPSHOT:after_nt_loop


# ---- Layer J: JIT entry ------------------------------------------------------------------------------------


@lru_cache(maxsize=None)
def _build_kernel(dtype, head_dim, causal):
    """Return the kernel for one element type, head size and mask."""

    @pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
    def flash_attention_fwd_kernel(
        q: pypto.Tensor([pypto.DYNAMIC, pypto.DYNAMIC, head_dim], dtype),
        k: pypto.Tensor([pypto.DYNAMIC, pypto.DYNAMIC, head_dim], dtype),
        v: pypto.Tensor([pypto.DYNAMIC, pypto.DYNAMIC, head_dim], dtype),
        out: pypto.Tensor([pypto.DYNAMIC, pypto.DYNAMIC, head_dim], dtype),
        lse: pypto.Tensor([pypto.DYNAMIC, pypto.DYNAMIC, 1], pypto.DT_FP32),
        # <<< SNAPSHOT:SIG_JIT
        # >>> SNAPSHOT:SIG_JIT
        scale: float,
    ):
        _flash_attention_fwd_kernel_impl(
            q,
            k,
            v,
            out,
            lse,
            # <<< SNAPSHOT:CALL_IMPL
            # >>> SNAPSHOT:CALL_IMPL
            scale,
            head_dim,
            causal,
            dtype,
        )

    return flash_attention_fwd_kernel


# ---- Layer K: host wrapper ---------------------------------------------------------------------------------


def _check(q, k, v):
    """Raise ValueError for arguments that the kernel was not built for."""
    if q.dim() != 3 or 0 in q.shape:
        raise ValueError(f"q must be [BH, S, D] and not empty, got {tuple(q.shape)}")
    if k.shape != q.shape or v.shape != q.shape:
        raise ValueError(f"q, k, v must share one shape, got {q.shape}, {k.shape}, {v.shape}")
    if q.dtype not in PYPTO_DTYPES or k.dtype != q.dtype or v.dtype != q.dtype:
        raise ValueError(f"q, k, v must share a floating dtype, got {q.dtype}, {k.dtype}, {v.dtype}")
    if q.shape[2] % 16 != 0 or q.shape[2] > 128:
        raise ValueError(f"D must be a multiple of 16 and at most 128, got {q.shape[2]}")
    if not (q.is_contiguous() and k.is_contiguous() and v.is_contiguous()):
        raise ValueError("q, k, v must be contiguous")


def flash_attention_fwd_wrapper(q, k, v, causal):
    """Return (out, lse) of scaled dot-product attention.

    q, k, v: [BH, S, D], one dtype of float32, float16, bfloat16, contiguous; BH, S >= 1; D a multiple of
    16, at most 128. causal: bool; True lets query i see keys 0..i only. Scores are scaled by 1 / sqrt(D).
    Returns out [BH, S, D] of q's dtype and lse [BH, S] float32, the logsumexp of each row of scaled scores.
    Raises ValueError for anything else.
    """
    _check(q, k, v)
    heads, length, head_dim = q.shape
    out = torch.empty((heads, length, head_dim), dtype=q.dtype, device=q.device)
    lse = torch.empty((heads, length), dtype=torch.float32, device=q.device)
    kernel = _build_kernel(PYPTO_DTYPES[q.dtype], head_dim, bool(causal))
    # <<< SNAPSHOT:HOST_WRAPPER_INSPECT_ALLOC
    # >>> SNAPSHOT:HOST_WRAPPER_INSPECT_ALLOC
    kernel(
        q,
        k,
        v,
        out,
        lse.unsqueeze(-1),
        # <<< SNAPSHOT:HOST_WRAPPER_INSPECT_PASS
        # >>> SNAPSHOT:HOST_WRAPPER_INSPECT_PASS
        1.0 / math.sqrt(head_dim),
    )
    return out, lse
