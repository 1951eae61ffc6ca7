"""Causal attention, one head per batch entry, by an online softmax over blocks of keys.

Each block of queries keeps a running maximum m, a running sum l and an unnormalised output acc. The mask is
built from row and column numbers, because pypto.triu does not pass the cost model.
"""

import math
import os

import torch
import torch_npu  # noqa: F401

import pypto

torch.npu.set_device(int(os.environ.get("TILE_FWK_DEVICE_ID", "0")))

BQ = 16
BK = 16
D = 64
SCALE = 1.0 / math.sqrt(D)
NEG = -30000.0


def _scores(q_tile, k_tile):
    """Scaled q @ k^T for one pair of blocks, in fp32."""
    pypto.set_cube_tile_shapes([16, 16], [64, 64], [16, 16])
    raw = pypto.matmul(q_tile, k_tile, pypto.DT_FP32, b_trans=True)
    return raw * SCALE


def _weighted(p_tile, v_tile):
    """p @ v for one pair of blocks, in fp32."""
    pypto.set_cube_tile_shapes([16, 16], [16, 16], [64, 64])
    return pypto.matmul(p_tile, v_tile, pypto.DT_FP32)


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
def causal_attention_kernel(
    q: pypto.Tensor([pypto.DYNAMIC, D], pypto.DT_FP32),
    k: pypto.Tensor([pypto.DYNAMIC, D], pypto.DT_FP32),
    v: pypto.Tensor([pypto.DYNAMIC, D], pypto.DT_FP32),
    bias: pypto.Tensor([BQ, BK], pypto.DT_FP32),
    out: pypto.Tensor([pypto.DYNAMIC, D], pypto.DT_FP32),
    batch: int,
    seq: int,
):
    pypto.set_vec_tile_shapes(16, 64)
    blocks = seq // BK
    for b in pypto.loop(batch, name="BATCH", idx_name="b"):
        for i in pypto.loop(blocks, name="Q_BLOCKS", idx_name="i"):
            row = b * seq + i * BQ
            q_tile = pypto.view(q, [BQ, D], [row, 0])
            m = pypto.tensor([BQ, 1], pypto.DT_FP32, "m")
            l = pypto.tensor([BQ, 1], pypto.DT_FP32, "l")
            acc = pypto.tensor([BQ, D], pypto.DT_FP32, "acc")
            for j in pypto.loop(i + 1, name="K_BLOCKS", idx_name="j"):
                col = b * seq + j * BK
                s = _scores(q_tile, pypto.view(k, [BK, D], [col, 0]))
                v_tile = pypto.view(v, [BK, D], [col, 0])
                if pypto.is_loop_end(j):
                    s = s + bias
                if pypto.is_loop_begin(j):
                    m[:] = pypto.amax(s, -1, keepdim=True)
                    p = pypto.exp(s - m)
                    l[:] = pypto.sum(p, -1, keepdim=True)
                    acc[:] = _weighted(p, v_tile)
                else:
                    m_new = pypto.maximum(m, pypto.amax(s, -1, keepdim=True))
                    p = pypto.exp(s - m_new)
                    shrink = pypto.exp(m - m_new)
                    l[:] = l * shrink + pypto.sum(p, -1, keepdim=True)
                    acc[:] = acc * shrink + _weighted(p, v_tile)
                    m[:] = m_new
                if pypto.is_loop_end(j):
                    pypto.assemble(acc / l, [row, 0], out)


def causal_attention_wrapper(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """q, k, v [B, S, 64] fp32 with S a multiple of 16; returns [B, S, 64] fp32."""
    batch, seq, depth = q.shape
    if seq % BQ or depth != D:
        raise ValueError(f"need S % {BQ} == 0 and depth {D}, got {tuple(q.shape)}")
    bias = torch.full((BQ, BK), NEG, dtype=torch.float32, device=q.device)
    bias = torch.triu(bias, diagonal=1)
    out = torch.empty((batch * seq, D), dtype=torch.float32, device=q.device)
    causal_attention_kernel(
        q.reshape(-1, D).contiguous(), k.reshape(-1, D).contiguous(), v.reshape(-1, D).contiguous(), bias, out, batch, seq
    )
    return out.view(batch, seq, D)
