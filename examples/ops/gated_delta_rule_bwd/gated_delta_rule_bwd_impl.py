"""The gradients dq, dk, dv, dg, dbeta of the gated delta rule.

One kernel, one launch. Heads (BH) and tokens (T) are dynamic; key size K and value size V are fixed per
build. Tokens are taken 64 at a time: inside a chunk the recurrence is a triangular system, which is
inverted block by block; between chunks a state is carried. The first walk replays the forward pass and
stores the state that enters each chunk, and what each token writes, in memory of the wrapper; the second
walk goes from the last chunk to the first and carries the gradient of the state. Everything is float32 on
the chip; 16-bit inputs are widened first and results rounded once.
"""

import math
import os
from functools import lru_cache

import pypto
import torch
import torch_npu  # noqa: F401  (registers the npu device)

torch.npu.set_device(int(os.environ.get("TILE_FWK_DEVICE_ID", "0")))

# ---- Layer D: host constants -------------------------------------------------------------------------------

CHUNK = 64
"""Tokens per loop step. Inside a chunk all is products of matrices; between chunks a state is carried."""

LEVELS = 6
"""CHUNK = 2 ** LEVELS; see pypto_inverse."""

NEVER = -1.0e4
"""Exponent of a pair that does not exist: exp of it is 0."""

PYPTO_DTYPES = {torch.float32: pypto.DT_FP32, torch.float16: pypto.DT_FP16, torch.bfloat16: pypto.DT_BF16}


# ---- Layer H: sub-kernels ----------------------------------------------------------------------------------


def pypto_load(source, head, row, rows, width, dtype):
    """Return rows [row, row + CHUNK) of one head as float32 [CHUNK, width], valid [rows, width]."""
    pypto.set_vec_tile_shapes(1, 64, 128)
    tile = pypto.view(source, [1, CHUNK, width], [head, row, 0], valid_shape=[1, rows, width])
    tile = pypto.reshape(tile, [CHUNK, width], valid_shape=[rows, width])
    pypto.set_vec_tile_shapes(64, 128)
    return tile if dtype == pypto.DT_FP32 else pypto.cast(tile, pypto.DT_FP32)


def pypto_store(tile, target, head, row, rows, width, dtype):
    """Round a float32 tile [CHUNK, width] and write its valid rows to one head of `target`."""
    pypto.set_vec_tile_shapes(64, 128)
    if dtype != pypto.DT_FP32:
        tile = pypto.cast(tile, dtype, pypto.CastMode.CAST_RINT)
    pypto.set_vec_tile_shapes(1, 64, 128)
    tile = pypto.reshape(tile, [1, CHUNK, width], valid_shape=[1, rows, width])
    pypto.assemble(tile, [head, row, 0], target)
    pypto.set_vec_tile_shapes(64, 128)


def pypto_store_state(state, target, head, row, keys, values):
    """Write a float32 state [keys, values] to rows [row, row + keys) of one head of `target`."""
    pypto.set_vec_tile_shapes(1, 64, 128)
    pypto.assemble(pypto.reshape(state, [1, keys, values]), [head, row, 0], target)
    pypto.set_vec_tile_shapes(64, 128)


def pypto_product(left, right, a_trans=False, b_trans=False):
    """Return the product of two float32 matrices in float32."""
    pypto.set_cube_tile_shapes([64, 128], [64, 128], [64, 128])
    pypto.set_vec_tile_shapes(64, 128)
    return pypto.matmul(left, right, pypto.DT_FP32, a_trans=a_trans, b_trans=b_trans)


def pypto_index(size):
    """Return token // size as float32, by rows [CHUNK, CHUNK] and by columns [1, CHUNK]."""
    pypto.set_vec_tile_shapes(64)
    index = pypto.arange(0.0, 64.0, 1.0)  # [CHUNK]
    if size > 1:
        index = pypto.cast(index * (1.0 / size), pypto.DT_INT32, pypto.CastMode.CAST_TRUNC)
        index = pypto.cast(index, pypto.DT_FP32)
    pypto.set_vec_tile_shapes(64, 128)
    row = pypto.expand_clone(pypto.reshape(index, [CHUNK, 1]), [CHUNK, CHUNK])
    return row, pypto.reshape(index, [1, CHUNK])


def pypto_spread_column(column, rows):
    """Return [CHUNK, CHUNK], valid [rows, rows], whose columns are all `column` [CHUNK, 1]."""
    pypto.set_vec_tile_shapes(64, 128)
    return pypto.expand_clone(column, [CHUNK, CHUNK], valid_shape=[rows, rows])


def pypto_spread_row(column, rows):
    """Return [CHUNK, CHUNK], valid [rows, rows], whose rows are all `column` [CHUNK, 1] laid flat."""
    pypto.set_vec_tile_shapes(64, 128)
    flat = pypto.reshape(column, [1, CHUNK], valid_shape=[1, rows])
    return pypto.expand_clone(flat, [CHUNK, CHUNK], valid_shape=[rows, rows])


def pypto_masks(rows):
    """Return bool [CHUNK, CHUNK], valid [rows, rows]: i sees j (i >= j), and j is past (i > j)."""
    row, column = pypto_index(1)
    seen = pypto.view(pypto.ge(row, column), [CHUNK, CHUNK], [0, 0], valid_shape=[rows, rows])
    past = pypto.view(pypto.gt(row, column), [CHUNK, CHUNK], [0, 0], valid_shape=[rows, rows])
    return seen, past


def pypto_decays(g_tile, seen, rows):
    """Return the decays of a chunk, all float32 and at most 1.

    into [CHUNK, 1]: from the chunk's beginning to a token. onward [CHUNK, 1]: from a token to its end.
    between [CHUNK, CHUNK]: from token j to token i, 0 for j > i; the exponent is masked, not the result.
    """
    pypto.set_vec_tile_shapes(64, 128)
    total = pypto.sum(pypto.where(seen, pypto_spread_row(g_tile, rows), 0.0), -1, True)  # [CHUNK, 1]
    last = pypto.expand_clone(pypto.sum(g_tile, 0, True), [CHUNK, 1], valid_shape=[rows, 1])
    gap = pypto_spread_column(total, rows) - pypto_spread_row(total, rows)
    between = pypto.exp(pypto.where(seen, gap, NEVER))
    return pypto.exp(total), pypto.exp(last - total), between


def pypto_chunk_decay(g_tile, keys):
    """Return the decay of a whole chunk as [keys, 1]."""
    pypto.set_vec_tile_shapes(64, 128)
    return pypto.exp(pypto.expand_clone(pypto.sum(g_tile, 0, True), [keys, 1]))


def pypto_inverse(mix, seen, past, rows):
    """Return the inverse of 1 + mix for a strictly lower triangular `mix` [CHUNK, CHUNK].

    Blocks of 2, 4, ... CHUNK: two inverted blocks X and Y with `part` of mix under the diagonal become one,
    whose lower left is -Y part X. A series in powers of mix needs as many products, but its terms outgrow
    float32 when keys are alike.
    """
    done = mix * 0.0
    inverse = pypto.where(past, done, pypto.where(seen, done + 1.0, done))
    for level in range(LEVELS):
        inside = mix
        if level < LEVELS - 1:
            row, column = pypto_index(2 << level)
            block = pypto.view(pypto.eq(row, column), [CHUNK, CHUNK], [0, 0], valid_shape=[rows, rows])
            inside = pypto.where(block, mix, 0.0)
        part = inside - done
        if level > 0:
            part = pypto_product(pypto_product(inverse, part), inverse)
        inverse = inverse - part
        done = inside
    return inverse


def pypto_writes(k_tile, v_tile, beta_tile, into, inverse, state):
    """Return (read, error, u): what the state gives at each key, v - read, and what each token writes."""
    read = pypto_product(k_tile, state) * into  # [CHUNK, V]
    error = v_tile - read
    return read, error, pypto_product(inverse, error * beta_tile)


def pypto_load_state(source, head, row, keys, values):
    """Return rows [row, row + keys) of one head as float32 [keys, values]."""
    pypto.set_vec_tile_shapes(1, 64, 128)
    state = pypto.reshape(pypto.view(source, [1, keys, values], [head, row, 0]), [keys, values])
    pypto.set_vec_tile_shapes(64, 128)
    return state


def pypto_write_grads(scores, k_tile, dout_tile, u_tile, inverse, onward, between, seen, past, dstate):
    """Return (dtarget, dmix): the gradients of beta error [CHUNK, V] and of mix [CHUNK, CHUNK].

    scores: scale q k^T. dstate: the gradient of the state that leaves the chunk.
    """
    reach = pypto.where(seen, scores * between, 0.0)
    du = pypto_product(reach, dout_tile, a_trans=True) + pypto_product(k_tile * onward, dstate)
    dtarget = pypto_product(inverse, du, a_trans=True)
    dmix = pypto.where(past, pypto_product(dtarget, u_tile, b_trans=True) * -1.0, 0.0)
    return dtarget, dmix


def pypto_gate_grad(column, pairs, last, past, rows):
    """Return dg [CHUNK, 1]: for each token the sum over it and all later ones, plus `last` [1, 1].

    The gradient of the running sum of g is `column` plus the row sums minus the column sums of `pairs`.
    """
    pypto.set_vec_tile_shapes(64, 128)
    column = column + pypto.sum(pairs, -1, True)
    total = pypto_spread_row(column, rows)
    total = total - pypto.expand_clone(pypto.sum(pairs, 0, True), [CHUNK, CHUNK], valid_shape=[rows, rows])
    ahead = pypto.where(past, 0.0, total)  # j >= i
    return pypto.sum(ahead, -1, True) + pypto.expand_clone(last, [CHUNK, 1], valid_shape=[rows, 1])


# ---- Layer I: kernel body ----------------------------------------------------------------------------------


def _gated_delta_rule_bwd_replay_impl(k, v, g, beta, states, u, head, length, keys, values, dtype):
    """Walk the chunks of one head: store the state that enters each, and what its tokens write."""
    pypto.set_vec_tile_shapes(64, 128)
    state = pypto.tensor([keys, values], pypto.DT_FP32, "state")
    state[:] = pypto.full([keys, values], 0.0, pypto.DT_FP32)
    for n in pypto.loop((length + CHUNK - 1) // CHUNK, name="CHUNKS", idx_name="n"):
        row = n * CHUNK
        rows = pypto.min(length - row, CHUNK)
        k_tile = pypto_load(k, head, row, rows, keys, dtype)
        v_tile = pypto_load(v, head, row, rows, values, dtype)
        g_tile = pypto_load(g, head, row, rows, 1, pypto.DT_FP32)
        beta_tile = pypto_load(beta, head, row, rows, 1, pypto.DT_FP32)
        seen, past = pypto_masks(rows)
        into, onward, between = pypto_decays(g_tile, seen, rows)
        overlap = pypto_product(k_tile, k_tile, b_trans=True)
        mix = pypto.where(past, overlap * between * beta_tile, 0.0)
        inverse = pypto_inverse(mix, seen, past, rows)
        entering = state + 0.0
        _, _, u_tile = pypto_writes(k_tile, v_tile, beta_tile, into, inverse, entering)
        pypto_store_state(entering, states, head, n * keys, keys, values)
        pypto_store(u_tile, u, head, row, rows, values, pypto.DT_FP32)
        written = pypto_product(k_tile * onward, u_tile, a_trans=True)
        state[:] = entering * pypto_chunk_decay(g_tile, keys) + written


def _gated_delta_rule_bwd_reverse_impl(
    q, k, v, g, beta, dout, states, u, dq, dk, dv, dg, dbeta, head, length, scale, keys, values, dtype
):
    """Walk the chunks of one head from the last to the first and carry the gradient of the state."""
    pypto.set_vec_tile_shapes(64, 128)
    carried = pypto.tensor([keys, values], pypto.DT_FP32, "carried")
    carried[:] = pypto.full([keys, values], 0.0, pypto.DT_FP32)
    chunks = (length + CHUNK - 1) // CHUNK
    for back in pypto.loop(chunks, name="BACK", idx_name="back"):
        n = chunks - 1 - back
        row = n * CHUNK
        rows = pypto.min(length - row, CHUNK)
        q_tile = pypto_load(q, head, row, rows, keys, dtype)
        k_tile = pypto_load(k, head, row, rows, keys, dtype)
        v_tile = pypto_load(v, head, row, rows, values, dtype)
        dout_tile = pypto_load(dout, head, row, rows, values, dtype)
        g_tile = pypto_load(g, head, row, rows, 1, pypto.DT_FP32)
        beta_tile = pypto_load(beta, head, row, rows, 1, pypto.DT_FP32)
        u_tile = pypto_load(u, head, row, rows, values, pypto.DT_FP32)
        entering = pypto_load_state(states, head, n * keys, keys, values)
        dstate = carried + 0.0
        # <<< SNAPSHOT:inside_nt_loop
        # >>> SNAPSHOT:inside_nt_loop
        # What the forward pass computed in this chunk.
        seen, past = pypto_masks(rows)
        into, onward, between = pypto_decays(g_tile, seen, rows)
        overlap = pypto_product(k_tile, k_tile, b_trans=True)
        plain = pypto.where(past, overlap * between, 0.0)
        inverse = pypto_inverse(plain * beta_tile, seen, past, rows)
        read = pypto_product(k_tile, entering) * into
        error = v_tile - read
        scores = pypto_product(q_tile, k_tile, b_trans=True) * scale
        # Gradients of what the tokens wrote, then of q, k, v and beta.
        dtarget, dmix = pypto_write_grads(
            scores, k_tile, dout_tile, u_tile, inverse, onward, between, seen, past, dstate
        )
        dv_tile = dtarget * beta_tile
        dbeta_tile = pypto.sum(dtarget * error, -1, True) + pypto.sum(dmix * plain, -1, True)
        reach = pypto.where(seen, pypto_product(dout_tile, u_tile, b_trans=True) * between, 0.0)
        from_state = pypto_product(dout_tile, entering, b_trans=True) * into * scale
        dq_tile = pypto_product(reach, k_tile) * scale + from_state
        pull = dmix * between * beta_tile
        leaving = pypto_product(u_tile, dstate, b_trans=True) * onward
        reading = pypto_product(dv_tile, entering, b_trans=True) * into
        dk_tile = pypto_product(reach, q_tile, a_trans=True) * scale + leaving - reading
        dk_tile = dk_tile + pypto_product(pull, k_tile) + pypto_product(pull, k_tile, a_trans=True)
        # The gradient of g, by way of its running sum.
        outgoing = pypto.sum(k_tile * leaving, -1, True)
        column = pypto.sum(q_tile * from_state, -1, True) - pypto.sum(dv_tile * read, -1, True) - outgoing
        decay = pypto_chunk_decay(g_tile, keys)
        faded = pypto.sum(pypto.sum(dstate * entering * decay, -1, True), 0, True)
        last = pypto.sum(outgoing, 0, True) + faded  # [1, 1]
        dg_tile = pypto_gate_grad(column, reach * scores + pull * overlap, last, past, rows)
        pypto_store(dq_tile, dq, head, row, rows, keys, dtype)
        pypto_store(dk_tile, dk, head, row, rows, keys, dtype)
        pypto_store(dv_tile, dv, head, row, rows, values, dtype)
        pypto_store(dg_tile, dg, head, row, rows, 1, pypto.DT_FP32)
        pypto_store(dbeta_tile, dbeta, head, row, rows, 1, pypto.DT_FP32)
        asked = pypto_product(q_tile * into, dout_tile, a_trans=True) * scale
        carried[:] = dstate * decay + asked - pypto_product(k_tile * into, dv_tile, a_trans=True)


def _gated_delta_rule_bwd_kernel_impl(
    q,
    k,
    v,
    g,
    beta,
    dout,
    states,
    u,
    dq,
    dk,
    dv,
    dg,
    dbeta,
    # <<< SNAPSHOT:SIG_IMPL
    # >>> SNAPSHOT:SIG_IMPL
    scale,
    keys,
    values,
    dtype,
):
    """For each head: replay the forward pass, then walk back over the states it stored."""
    heads, length = k.shape[0], k.shape[1]
    for head in pypto.loop(heads, name="HEADS", idx_name="head"):
        # <<< SNAPSHOT:before_nt_loop
        # >>> SNAPSHOT:before_nt_loop
        _gated_delta_rule_bwd_replay_impl(
            k, v, g, beta, states, u, head, length, keys, values, dtype
        )
        _gated_delta_rule_bwd_reverse_impl(
            q, k, v, g, beta, dout, states, u, dq, dk, dv, dg, dbeta, head, length, scale, keys, values, dtype
        )
        # <<< SNAPSHOT:after_nt_loop
        # >>> SNAPSHOT:after_nt_loop


# ---- Layer J: JIT entry ------------------------------------------------------------------------------------


@lru_cache(maxsize=None)
def _build_kernel(dtype, keys, values):
    """Return the kernel for one element type, key size and value size."""

    @pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
    def gated_delta_rule_bwd_kernel(
        q: pypto.Tensor([pypto.DYNAMIC, pypto.DYNAMIC, keys], dtype),
        k: pypto.Tensor([pypto.DYNAMIC, pypto.DYNAMIC, keys], dtype),
        v: pypto.Tensor([pypto.DYNAMIC, pypto.DYNAMIC, values], dtype),
        g: pypto.Tensor([pypto.DYNAMIC, pypto.DYNAMIC, 1], pypto.DT_FP32),
        beta: pypto.Tensor([pypto.DYNAMIC, pypto.DYNAMIC, 1], pypto.DT_FP32),
        dout: pypto.Tensor([pypto.DYNAMIC, pypto.DYNAMIC, values], dtype),
        states: pypto.Tensor([pypto.DYNAMIC, pypto.DYNAMIC, values], pypto.DT_FP32),
        u: pypto.Tensor([pypto.DYNAMIC, pypto.DYNAMIC, values], pypto.DT_FP32),
        dq: pypto.Tensor([pypto.DYNAMIC, pypto.DYNAMIC, keys], dtype),
        dk: pypto.Tensor([pypto.DYNAMIC, pypto.DYNAMIC, keys], dtype),
        dv: pypto.Tensor([pypto.DYNAMIC, pypto.DYNAMIC, values], dtype),
        dg: pypto.Tensor([pypto.DYNAMIC, pypto.DYNAMIC, 1], pypto.DT_FP32),
        dbeta: pypto.Tensor([pypto.DYNAMIC, pypto.DYNAMIC, 1], pypto.DT_FP32),
        # <<< SNAPSHOT:SIG_JIT
        # >>> SNAPSHOT:SIG_JIT
        scale: float,
    ):
        _gated_delta_rule_bwd_kernel_impl(
            q,
            k,
            v,
            g,
            beta,
            dout,
            states,
            u,
            dq,
            dk,
            dv,
            dg,
            dbeta,
            # <<< SNAPSHOT:CALL_IMPL
            # >>> SNAPSHOT:CALL_IMPL
            scale,
            keys,
            values,
            dtype,
        )

    return gated_delta_rule_bwd_kernel


# ---- Layer K: host wrapper ---------------------------------------------------------------------------------


def _check(k, v, g, beta):
    """Raise ValueError for arguments of the replay that the kernel was not built for."""
    if k.dim() != 3 or v.dim() != 3 or 0 in k.shape or 0 in v.shape or k.shape[:2] != v.shape[:2]:
        raise ValueError(f"k must be [BH, T, K], v [BH, T, V], not empty, got {k.shape} and {v.shape}")
    if any(tensor.shape != k.shape[:2] or tensor.dtype != torch.float32 for tensor in (g, beta)):
        raise ValueError("g and beta must be float32 [BH, T]")
    if k.dtype not in PYPTO_DTYPES or v.dtype != k.dtype:
        raise ValueError(f"k and v must share a floating dtype, got {k.dtype} and {v.dtype}")
    if any(size % 16 != 0 or size > 128 for size in (k.shape[2], v.shape[2])):
        raise ValueError(f"K and V must be multiples of 16 up to 128, got {k.shape[2]} and {v.shape[2]}")
    if not all(tensor.is_contiguous() for tensor in (k, v, g, beta)):
        raise ValueError("k, v, g, beta must be contiguous")


def _check_like(tensor, other):
    """Raise ValueError unless `tensor` has shape and dtype of `other`, and is contiguous."""
    if tensor.shape != other.shape or tensor.dtype != other.dtype or not tensor.is_contiguous():
        raise ValueError(f"need contiguous {other.shape} {other.dtype}, got {tensor.shape} {tensor.dtype}")


def gated_delta_rule_bwd_wrapper(q, k, v, g, beta, dout):
    """Return (dq, dk, dv, dg, dbeta), the gradients of the gated delta rule.

    q, k: [BH, T, K], v, dout: [BH, T, V], one dtype of float32, float16, bfloat16; g, beta: [BH, T] float32,
    g <= 0. dout is the gradient of the output. All contiguous; BH, T >= 1; K and V multiples of 16, at
    most 128. Returns dq, dk, dv of the inputs' dtype and dg, dbeta float32, each of the shape of its
    input. Raises ValueError for anything else.
    """
    _check(k, v, g, beta)
    _check_like(q, k)
    _check_like(dout, v)
    heads, length, keys = k.shape
    values, chunks = v.shape[2], (length + CHUNK - 1) // CHUNK
    states = torch.empty((heads, chunks, keys, values), dtype=torch.float32, device=k.device)
    u = torch.empty((heads, length, values), dtype=torch.float32, device=k.device)
    dq = torch.empty((heads, length, keys), dtype=k.dtype, device=k.device)
    dk = torch.empty((heads, length, keys), dtype=k.dtype, device=k.device)
    dv = torch.empty((heads, length, values), dtype=k.dtype, device=k.device)
    dg = torch.empty((heads, length), dtype=torch.float32, device=k.device)
    dbeta = torch.empty((heads, length), dtype=torch.float32, device=k.device)
    kernel = _build_kernel(PYPTO_DTYPES[k.dtype], keys, values)
    # <<< SNAPSHOT:HOST_WRAPPER_INSPECT_ALLOC
    # >>> SNAPSHOT:HOST_WRAPPER_INSPECT_ALLOC
    kernel(
        q,
        k,
        v,
        g.unsqueeze(-1),
        beta.unsqueeze(-1),
        dout,
        states.view(heads, chunks * keys, values),
        u,
        dq,
        dk,
        dv,
        dg.unsqueeze(-1),
        dbeta.unsqueeze(-1),
        # <<< SNAPSHOT:HOST_WRAPPER_INSPECT_PASS
        # >>> SNAPSHOT:HOST_WRAPPER_INSPECT_PASS
        1.0 / math.sqrt(keys),
    )
    return dq, dk, dv, dg, dbeta
