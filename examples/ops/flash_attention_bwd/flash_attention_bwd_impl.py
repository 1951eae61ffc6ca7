"""The gradients dq, dk, dv of scaled dot-product attention.

One kernel, one launch. Heads (BH) and sequence length (S) are dynamic; head size D and the causal flag
are fixed per build. Weights and score gradient are rebuilt from lse, tile by tile, and never leave the
chip. dv and dk are sums over queries, dq is a sum over keys: a walk by key tiles makes the first two, a
walk by query tiles makes dq, so that every output is written once and nothing needs an atomic addition.
Under the causal flag both walks skip the tiles above the diagonal, and mask the diagonal tile only.
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
"""Queries, and keys, per loop step. Both are equal, so the diagonal runs through whole tiles."""

PYPTO_DTYPES = {torch.float32: pypto.DT_FP32, torch.float16: pypto.DT_FP16, torch.bfloat16: pypto.DT_BF16}


# ---- Layer H: sub-kernels ----------------------------------------------------------------------------------


def pypto_load(source, head, row, rows, width):
    """Return rows [row, row + S_TILE) of one head as [S_TILE, width], valid [rows, width]."""
    pypto.set_vec_tile_shapes(1, 64, 128)
    tile = pypto.view(source, [1, S_TILE, width], [head, row, 0], valid_shape=[1, rows, width])
    tile = pypto.reshape(tile, [S_TILE, width], valid_shape=[rows, width])
    pypto.set_vec_tile_shapes(64, 128)
    return tile


def pypto_widen(tile, dtype):
    """Return `tile` as float32; a tile that is float32 already comes back as it is."""
    return tile if dtype == pypto.DT_FP32 else pypto.cast(tile, pypto.DT_FP32)


def pypto_narrow(tile, dtype):
    """Return a float32 tile in the element type of the inputs, as the cube unit takes it."""
    return tile if dtype == pypto.DT_FP32 else pypto.cast(tile, dtype, pypto.CastMode.CAST_RINT)


def pypto_product(left, right, a_trans=False, b_trans=False):
    """Return the product of two tiles in float32."""
    pypto.set_cube_tile_shapes([128, 128], [128, 128], [128, 128])
    pypto.set_vec_tile_shapes(64, 128)
    return pypto.matmul(left, right, pypto.DT_FP32, a_trans=a_trans, b_trans=b_trans)


def pypto_weights(q_tile, k_tile, lse_tile, scale):
    """Return exp(scale q k^T - lse), float32 [S_TILE, S_TILE], valid [rows of q, rows of k]."""
    return pypto.exp(pypto_product(q_tile, k_tile, b_trans=True) * scale - lse_tile)


def pypto_hide_future(weights, rows, cols):
    """Return the weights of a diagonal tile with 0 for every pair (query, later key)."""
    pypto.set_vec_tile_shapes(128)
    index = pypto.arange(0.0, 128.0, 1.0)  # [S_TILE]
    pypto.set_vec_tile_shapes(64, 128)
    query = pypto.expand_clone(pypto.reshape(index, [S_TILE, 1]), [S_TILE, S_TILE])
    keep = pypto.ge(query, pypto.reshape(index, [1, S_TILE]))  # [S_TILE, S_TILE] bool
    keep = pypto.view(keep, [S_TILE, S_TILE], [0, 0], valid_shape=[rows, cols])
    return pypto.where(keep, weights, 0.0)


def pypto_score_grad(weights, out_tile, dout_tile, v_tile, scale, dtype):
    """Return scale P (dout v^T - rowsum(dout out)), float32 [S_TILE, S_TILE]; the difference comes first."""
    row_dot = pypto.sum(pypto_widen(dout_tile, dtype) * pypto_widen(out_tile, dtype), -1, True)
    return weights * (pypto_product(dout_tile, v_tile, b_trans=True) - row_dot) * scale


def pypto_read_state(state, rows, width):
    """Return a [S_TILE, width] state tensor narrowed to its valid rows, which a read forgets."""
    return pypto.view(state, [S_TILE, width], [0, 0], valid_shape=[rows, width])


def pypto_store_state(state, target, head, row, rows, width, dtype):
    """Round a float32 state [S_TILE, width] and write its valid rows to one head of `target`."""
    pypto.set_vec_tile_shapes(64, 128)
    tile = pypto_narrow(pypto_read_state(state, rows, width), dtype)
    pypto.set_vec_tile_shapes(1, 64, 128)
    tile = pypto.reshape(tile, [1, S_TILE, width], valid_shape=[1, rows, width])
    pypto.assemble(tile, [head, row, 0], target)


# ---- Layer I: kernel body ----------------------------------------------------------------------------------


def _flash_attention_bwd_keys_impl(
    q, k, v, out, lse, dout, dk, dv, head, length, scale, head_dim, causal, dtype
):
    """For each key tile: walk the query tiles, add up dv and dk, write them once."""
    tiles = (length + S_TILE - 1) // S_TILE
    for j in pypto.loop(tiles, name="KEYS", idx_name="j"):
        cols = pypto.min(length - j * S_TILE, S_TILE)
        dv_acc = pypto.tensor([S_TILE, head_dim], pypto.DT_FP32, "dv_acc")
        dk_acc = pypto.tensor([S_TILE, head_dim], pypto.DT_FP32, "dk_acc")
        # <<< SNAPSHOT:before_nt_loop
        # >>> SNAPSHOT:before_nt_loop
        for s in pypto.loop(tiles - j if causal else tiles, name="QUERIES", idx_name="s"):
            i = j + s if causal else s
            rows = pypto.min(length - i * S_TILE, S_TILE)
            q_tile = pypto_load(q, head, i * S_TILE, rows, head_dim)
            k_tile = pypto_load(k, head, j * S_TILE, cols, head_dim)
            v_tile = pypto_load(v, head, j * S_TILE, cols, head_dim)
            out_tile = pypto_load(out, head, i * S_TILE, rows, head_dim)
            dout_tile = pypto_load(dout, head, i * S_TILE, rows, head_dim)
            lse_tile = pypto_load(lse, head, i * S_TILE, rows, 1)
            weights = pypto_weights(q_tile, k_tile, lse_tile, scale)
            if causal:
                if pypto.cond(pypto.is_loop_begin(s)):  # the diagonal tile: i == j
                    weights = pypto_hide_future(weights, rows, cols)
            ds_tile = pypto_score_grad(weights, out_tile, dout_tile, v_tile, scale, dtype)
            dv_part = pypto_product(pypto_narrow(weights, dtype), dout_tile, a_trans=True)
            dk_part = pypto_product(pypto_narrow(ds_tile, dtype), q_tile, a_trans=True)
            # <<< SNAPSHOT:inside_nt_loop
            # >>> SNAPSHOT:inside_nt_loop
            if pypto.cond(pypto.is_loop_begin(s)):
                dv_acc[:] = dv_part
                dk_acc[:] = dk_part
            else:
                dv_acc[:] = pypto_read_state(dv_acc, cols, head_dim) + dv_part
                dk_acc[:] = pypto_read_state(dk_acc, cols, head_dim) + dk_part
        # <<< SNAPSHOT:after_nt_loop
        # >>> SNAPSHOT:after_nt_loop
        pypto_store_state(dv_acc, dv, head, j * S_TILE, cols, head_dim, dtype)
        pypto_store_state(dk_acc, dk, head, j * S_TILE, cols, head_dim, dtype)


def _flash_attention_bwd_queries_impl(
    q, k, v, out, lse, dout, dq, head, length, scale, head_dim, causal, dtype
):
    """For each query tile: walk the key tiles, rebuild ds of each, add up dq, write it once."""
    tiles = (length + S_TILE - 1) // S_TILE
    for i in pypto.loop(tiles, name="QUERIES_OF_DQ", idx_name="i"):
        rows = pypto.min(length - i * S_TILE, S_TILE)
        dq_acc = pypto.tensor([S_TILE, head_dim], pypto.DT_FP32, "dq_acc")
        for j in pypto.loop(i + 1 if causal else tiles, name="KEYS_OF_DQ", idx_name="j"):
            cols = pypto.min(length - j * S_TILE, S_TILE)
            q_tile = pypto_load(q, head, i * S_TILE, rows, head_dim)
            k_tile = pypto_load(k, head, j * S_TILE, cols, head_dim)
            v_tile = pypto_load(v, head, j * S_TILE, cols, head_dim)
            out_tile = pypto_load(out, head, i * S_TILE, rows, head_dim)
            dout_tile = pypto_load(dout, head, i * S_TILE, rows, head_dim)
            lse_tile = pypto_load(lse, head, i * S_TILE, rows, 1)
            weights = pypto_weights(q_tile, k_tile, lse_tile, scale)
            if causal:
                if pypto.cond(pypto.is_loop_end(j)):  # the diagonal tile: j == i
                    weights = pypto_hide_future(weights, rows, cols)
            ds_tile = pypto_score_grad(weights, out_tile, dout_tile, v_tile, scale, dtype)
            dq_part = pypto_product(pypto_narrow(ds_tile, dtype), k_tile)
            if pypto.cond(pypto.is_loop_begin(j)):
                dq_acc[:] = dq_part
            else:
                dq_acc[:] = pypto_read_state(dq_acc, rows, head_dim) + dq_part
        pypto_store_state(dq_acc, dq, head, i * S_TILE, rows, head_dim, dtype)


def _flash_attention_bwd_kernel_impl(
    q,
    k,
    v,
    out,
    lse,
    dout,
    dq,
    dk,
    dv,
    # <<< SNAPSHOT:SIG_IMPL
    # >>> SNAPSHOT:SIG_IMPL
    scale,
    head_dim,
    causal,
    dtype,
):
    """For each head: dv and dk by key tiles, then dq by query tiles. ds is built twice and never stored."""
    heads, length = q.shape[0], q.shape[1]
    for head in pypto.loop(heads, name="HEADS", idx_name="head"):
        _flash_attention_bwd_keys_impl(
            q, k, v, out, lse, dout, dk, dv, head, length, scale, head_dim, causal, dtype
        )
        _flash_attention_bwd_queries_impl(
            q, k, v, out, lse, dout, dq, head, length, scale, head_dim, causal, dtype
        )


# ---- Layer J: JIT entry ------------------------------------------------------------------------------------


@lru_cache(maxsize=None)
def _build_kernel(dtype, head_dim, causal):
    """Return the kernel for one element type, head size and mask."""

    @pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
    def flash_attention_bwd_kernel(
        q: pypto.Tensor([pypto.DYNAMIC, pypto.DYNAMIC, head_dim], dtype),
        k: pypto.Tensor([pypto.DYNAMIC, pypto.DYNAMIC, head_dim], dtype),
        v: pypto.Tensor([pypto.DYNAMIC, pypto.DYNAMIC, head_dim], dtype),
        out: pypto.Tensor([pypto.DYNAMIC, pypto.DYNAMIC, head_dim], dtype),
        lse: pypto.Tensor([pypto.DYNAMIC, pypto.DYNAMIC, 1], pypto.DT_FP32),
        dout: pypto.Tensor([pypto.DYNAMIC, pypto.DYNAMIC, head_dim], dtype),
        dq: pypto.Tensor([pypto.DYNAMIC, pypto.DYNAMIC, head_dim], dtype),
        dk: pypto.Tensor([pypto.DYNAMIC, pypto.DYNAMIC, head_dim], dtype),
        dv: pypto.Tensor([pypto.DYNAMIC, pypto.DYNAMIC, head_dim], dtype),
        # <<< SNAPSHOT:SIG_JIT
        # >>> SNAPSHOT:SIG_JIT
        scale: float,
    ):
        _flash_attention_bwd_kernel_impl(
            q,
            k,
            v,
            out,
            lse,
            dout,
            dq,
            dk,
            dv,
            # <<< SNAPSHOT:CALL_IMPL
            # >>> SNAPSHOT:CALL_IMPL
            scale,
            head_dim,
            causal,
            dtype,
        )

    return flash_attention_bwd_kernel


# ---- Layer K: host wrapper ---------------------------------------------------------------------------------


def _check(q, k, v, out, lse, dout):
    """Raise ValueError for arguments that the kernel was not built for."""
    tensors = (q, k, v, out, dout)
    if q.dim() != 3 or 0 in q.shape:
        raise ValueError(f"q must be [BH, S, D] and not empty, got {tuple(q.shape)}")
    if any(tensor.shape != q.shape for tensor in tensors) or tuple(lse.shape) != tuple(q.shape[:2]):
        raise ValueError("q, k, v, out, dout must share one shape [BH, S, D], and lse be [BH, S]")
    if q.dtype not in PYPTO_DTYPES or any(tensor.dtype != q.dtype for tensor in tensors):
        raise ValueError("q, k, v, out, dout must share float32, float16 or bfloat16")
    if lse.dtype != torch.float32:
        raise ValueError(f"lse must be float32, got {lse.dtype}")
    if q.shape[2] % 16 != 0 or q.shape[2] > 128:
        raise ValueError(f"D must be a multiple of 16 and at most 128, got {q.shape[2]}")
    if not all(tensor.is_contiguous() for tensor in (*tensors, lse)):
        raise ValueError("q, k, v, out, lse, dout must be contiguous")


def flash_attention_bwd_wrapper(q, k, v, out, lse, dout, causal):
    """Return (dq, dk, dv), the gradients of scaled dot-product attention.

    q, k, v, out, dout: [BH, S, D], one dtype of float32, float16, bfloat16, contiguous; BH, S >= 1; D a
    multiple of 16, at most 128. lse: [BH, S] float32. out and lse are what the forward pass returned for
    q, k, v and causal; dout is the gradient of out. causal: bool; True lets query i see keys 0..i only.
    Returns three new tensors [BH, S, D] of q's dtype. Raises ValueError for anything else.
    """
    _check(q, k, v, out, lse, dout)
    heads, length, head_dim = q.shape
    dq = torch.empty((heads, length, head_dim), dtype=q.dtype, device=q.device)
    dk = torch.empty((heads, length, head_dim), dtype=q.dtype, device=q.device)
    dv = torch.empty((heads, length, head_dim), dtype=q.dtype, device=q.device)
    kernel = _build_kernel(PYPTO_DTYPES[q.dtype], head_dim, bool(causal))
    # <<< SNAPSHOT:HOST_WRAPPER_INSPECT_ALLOC
    # >>> SNAPSHOT:HOST_WRAPPER_INSPECT_ALLOC
    kernel(
        q,
        k,
        v,
        out,
        lse.unsqueeze(-1),
        dout,
        dq,
        dk,
        dv,
        # <<< SNAPSHOT:HOST_WRAPPER_INSPECT_PASS
        # >>> SNAPSHOT:HOST_WRAPPER_INSPECT_PASS
        1.0 / math.sqrt(head_dim),
    )
    return dq, dk, dv
