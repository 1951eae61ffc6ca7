"""Backward pass of attention for one head per batch entry, in production form.

    p  = exp(q k^T * scale - lse)
    dv = p^T dout
    ds = p * (dout v^T - dot) * scale
    dq = ds k            dk = ds^T q

`lse` [B*S, 1] is the forward's log-sum-exp per row, `dot` [B*S, 1] the row sum of dout * out. Both come from the
forward pass, so nothing here needs an online softmax: every pair of blocks is independent, and only the two
accumulators dk and dv are carried over the blocks of queries.

Layers (letters as in the design format):
    A  small host utilities          D  constants from DESIGN.md 3.2.5
    H  pypto_* sub-kernels           I  loops over blocks
    J  JIT entry                     K  host wrapper
    L  self-test, not part of the operator
"""

import argparse
import math
import os
import time
from typing import NamedTuple

import torch
import torch_npu  # noqa: F401

import pypto

torch.npu.set_device(int(os.environ.get("TILE_FWK_DEVICE_ID", "0")))

# ============================================================================================================
# Layer D: constants
# ============================================================================================================
D = 32  # depth of a head
BLOCK = 16  # rows of a block of queries and of a block of keys
SCALE = 1.0 / math.sqrt(D)


class CubeTile(NamedTuple):
    """[L0, L1] per dimension."""

    m: tuple
    k: tuple
    n: tuple


SCORE_TILE = ([16, 16], [32, 32], [16, 16])  # [BLOCK, D] x [D, BLOCK]
GRAD_TILE = ([16, 16], [16, 16], [32, 32])  # [BLOCK, BLOCK] x [BLOCK, D]
VEC_TILE = (BLOCK, D)


# ============================================================================================================
# Layer A: host utilities
# ============================================================================================================
def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(f"attention_backward: {message}")


def _rows(tensor: torch.Tensor) -> torch.Tensor:
    """[B, S, n] -> [B*S, n], contiguous."""
    return tensor.reshape(-1, tensor.shape[-1]).contiguous()


def _block_count(seq: int) -> int:
    count = 0
    while count * BLOCK < seq:
        count += 1
    return count


# ============================================================================================================
# Layer H: sub-kernels
# ============================================================================================================
def pypto_probabilities(q_tile, k_tile, lse_tile):
    """exp(q k^T * scale - lse) of one pair of blocks."""
    pypto.set_cube_tile_shapes(*SCORE_TILE)
    scores = pypto.matmul(q_tile, k_tile, pypto.DT_FP32, b_trans=True)
    pypto.set_vec_tile_shapes(*VEC_TILE)
    return pypto.exp(scores * SCALE - lse_tile)


def pypto_score_gradient(p, dout_tile, v_tile, dot_tile):
    """p * (dout v^T - dot) * scale; the difference is formed before the product, never after it."""
    pypto.set_cube_tile_shapes(*SCORE_TILE)
    dp = pypto.matmul(dout_tile, v_tile, pypto.DT_FP32, b_trans=True)
    pypto.set_vec_tile_shapes(*VEC_TILE)
    return p * (dp - dot_tile) * SCALE


def pypto_contract(weights, tile, transposed=False):
    """weights @ tile, or weights^T @ tile."""
    pypto.set_cube_tile_shapes(*GRAD_TILE)
    return pypto.matmul(weights, tile, pypto.DT_FP32, a_trans=transposed)


# ============================================================================================================
# Layer I: loops. dk and dv first: keys outside, queries inside; then dq: queries outside, keys inside.
# ============================================================================================================
def _key_gradients(q, k, v, dout, lse, dot, dk, dv, batch, seq):
    blocks = seq // BLOCK
    for b in pypto.loop(batch, name="KB_BATCH", idx_name="kb"):
        for j in pypto.loop(blocks, name="KB_KEYS", idx_name="kj"):
            col = b * seq + j * BLOCK
            k_tile = pypto.view(k, [BLOCK, D], [col, 0])
            v_tile = pypto.view(v, [BLOCK, D], [col, 0])
            dk_acc = pypto.tensor([BLOCK, D], pypto.DT_FP32, "dk_acc")
            dv_acc = pypto.tensor([BLOCK, D], pypto.DT_FP32, "dv_acc")
            for i in pypto.loop(blocks, name="KB_QUERIES", idx_name="ki", unroll_list=[1]):
                row = b * seq + i * BLOCK
                q_tile = pypto.view(q, [BLOCK, D], [row, 0])
                dout_tile = pypto.view(dout, [BLOCK, D], [row, 0])
                p = pypto_probabilities(q_tile, k_tile, pypto.view(lse, [BLOCK, 1], [row, 0]))
                ds = pypto_score_gradient(p, dout_tile, v_tile, pypto.view(dot, [BLOCK, 1], [row, 0]))
                if pypto.cond(pypto.is_loop_begin(i)):
                    dv_acc[:] = pypto_contract(p, dout_tile, transposed=True)
                    dk_acc[:] = pypto_contract(ds, q_tile, transposed=True)
                else:
                    dv_acc[:] = dv_acc + pypto_contract(p, dout_tile, transposed=True)
                    dk_acc[:] = dk_acc + pypto_contract(ds, q_tile, transposed=True)
                if pypto.cond(pypto.is_loop_end(i)):
                    pypto.assemble(dk_acc, [col, 0], dk)
                    pypto.assemble(dv_acc, [col, 0], dv)


def _query_gradient(q, k, v, dout, lse, dot, dq, batch, seq):
    blocks = seq // BLOCK
    for b in pypto.loop(batch, name="QB_BATCH", idx_name="qb"):
        for i in pypto.loop(blocks, name="QB_QUERIES", idx_name="qi"):
            row = b * seq + i * BLOCK
            q_tile = pypto.view(q, [BLOCK, D], [row, 0])
            dout_tile = pypto.view(dout, [BLOCK, D], [row, 0])
            lse_tile = pypto.view(lse, [BLOCK, 1], [row, 0])
            dot_tile = pypto.view(dot, [BLOCK, 1], [row, 0])
            dq_acc = pypto.tensor([BLOCK, D], pypto.DT_FP32, "dq_acc")
            for j in pypto.loop(blocks, name="QB_KEYS", idx_name="qj", unroll_list=[1]):
                col = b * seq + j * BLOCK
                k_tile = pypto.view(k, [BLOCK, D], [col, 0])
                v_tile = pypto.view(v, [BLOCK, D], [col, 0])
                p = pypto_probabilities(q_tile, k_tile, lse_tile)
                ds = pypto_score_gradient(p, dout_tile, v_tile, dot_tile)
                if pypto.cond(pypto.is_loop_begin(j)):
                    dq_acc[:] = pypto_contract(ds, k_tile)
                else:
                    dq_acc[:] = dq_acc + pypto_contract(ds, k_tile)
                if pypto.cond(pypto.is_loop_end(j)):
                    pypto.assemble(dq_acc, [row, 0], dq)


# ============================================================================================================
# Layer J: JIT entry
# ============================================================================================================
@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
def attention_backward_kernel(
    q: pypto.Tensor([pypto.DYNAMIC, D], pypto.DT_FP32),
    k: pypto.Tensor([pypto.DYNAMIC, D], pypto.DT_FP32),
    v: pypto.Tensor([pypto.DYNAMIC, D], pypto.DT_FP32),
    dout: pypto.Tensor([pypto.DYNAMIC, D], pypto.DT_FP32),
    lse: pypto.Tensor([pypto.DYNAMIC, 1], pypto.DT_FP32),
    dot: pypto.Tensor([pypto.DYNAMIC, 1], pypto.DT_FP32),
    dq: pypto.Tensor([pypto.DYNAMIC, D], pypto.DT_FP32),
    dk: pypto.Tensor([pypto.DYNAMIC, D], pypto.DT_FP32),
    dv: pypto.Tensor([pypto.DYNAMIC, D], pypto.DT_FP32),
    batch: int,
    seq: int,
):
    pypto.set_vec_tile_shapes(BLOCK, D)
    _key_gradients(q, k, v, dout, lse, dot, dk, dv, batch, seq)
    _query_gradient(q, k, v, dout, lse, dot, dq, batch, seq)


# ============================================================================================================
# Layer K: host wrapper
# ============================================================================================================
def attention_backward_wrapper(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    dout: torch.Tensor,
    row_lse: torch.Tensor,
    row_dot: torch.Tensor,
):
    """Gradients of attention.

    Args:
        q, k, v, dout: [B, S, 32] float32, S a multiple of 16.
        row_lse, row_dot: [B, S, 1] float32, from the forward pass.

    Returns:
        (dq, dk, dv), each [B, S, 32] float32.
    """
    batch, seq, depth = q.shape
    _require(depth == D, f"depth {depth} is not {D}")
    _require(seq == _block_count(seq) * BLOCK, f"S = {seq} is no multiple of {BLOCK}")
    for name, tensor in {"k": k, "v": v, "dout": dout}.items():
        _require(tensor.shape == q.shape, f"{name} has shape {tuple(tensor.shape)}")
    dq, dk, dv = (torch.empty((batch * seq, D), dtype=q.dtype, device=q.device) for _ in range(3))
    attention_backward_kernel(
        _rows(q), _rows(k), _rows(v), _rows(dout), _rows(row_lse), _rows(row_dot), dq, dk, dv, batch, seq
    )
    return tuple(grad.view(batch, seq, D) for grad in (dq, dk, dv))


# ============================================================================================================
# Layer L: self-test and benchmark, run by hand
# ============================================================================================================
def _self_test(batch: int = 2, seq: int = 48, seed: int = 42) -> None:
    generator = torch.Generator().manual_seed(seed)
    q, k, v, dout = (torch.randn(batch, seq, D, generator=generator) * 0.3 for _ in range(4))
    q.requires_grad_(), k.requires_grad_(), v.requires_grad_()
    scores = q @ k.transpose(1, 2) * SCALE
    lse = torch.logsumexp(scores, -1, keepdim=True)
    out = torch.exp(scores - lse) @ v
    out.backward(dout)
    dot = (dout * out).sum(-1, keepdim=True)
    grads = attention_backward_wrapper(*(t.detach() for t in (q, k, v, dout, lse, dot)))
    for name, grad, truth in zip(("dq", "dk", "dv"), grads, (q.grad, k.grad, v.grad)):
        print(name, float((grad - truth).abs().max()))


def _benchmark(iterations: int) -> float:
    """Mean seconds of a launch on fixed inputs."""
    x = torch.ones(1, 64, D)
    row = torch.zeros(1, 64, 1)
    start = time.perf_counter()
    for _ in range(iterations):
        attention_backward_wrapper(x, x, x, x, row, row)
    return (time.perf_counter() - start) / iterations


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--iterations", type=int, default=0)
    arguments = parser.parse_args()
    _self_test()
    if arguments.iterations:
        print("mean seconds", _benchmark(arguments.iterations))
