"""Cumulative file of phase M2: score gradient (M1) and its contraction with k and q (M2).

Same launch for both modules; the wrapper returns what module 2 leaves live: dq, dk, dv.
"""

import os

import torch
import torch_npu  # noqa: F401

import pypto

torch.npu.set_device(int(os.environ.get("TILE_FWK_DEVICE_ID", "0")))

S = 16
D = 32
TILES = ([16, 16], [16, 32], [16, 32])


def _mm(a, b, a_trans=False, b_trans=False):
    pypto.set_cube_tile_shapes(TILES[0], TILES[1], TILES[2])
    return pypto.matmul(a, b, pypto.DT_FP32, a_trans=a_trans, b_trans=b_trans)


# module 1: verified and frozen
def pypto_score_grad(q, k, v, dout, lse, dot):
    p = pypto.exp(_mm(q, k, b_trans=True) - lse)
    dp = _mm(dout, v, b_trans=True)
    ds = p * (dp - dot)
    dv = _mm(p, dout, a_trans=True)
    return ds, dv


# module 2: the one this phase adds
def pypto_qk_grad(ds, q, k):
    return _mm(ds, k), _mm(ds, q, a_trans=True)


def _score_grad_module12_kernel_impl(q, k, v, dout, lse, dot, dq, dk, dv):
    pypto.set_vec_tile_shapes(16, 32)
    for h in pypto.loop(q.shape[0] // S, name="HEADS", idx_name="h"):
        at = [h * S, 0]
        q_h = pypto.view(q, [S, D], at)
        k_h = pypto.view(k, [S, D], at)
        ds, dv_h = pypto_score_grad(
            q_h,
            k_h,
            pypto.view(v, [S, D], at),
            pypto.view(dout, [S, D], at),
            pypto.view(lse, [S, 1], at),
            pypto.view(dot, [S, 1], at),
        )
        dq_h, dk_h = pypto_qk_grad(ds, q_h, k_h)
        pypto.assemble(dq_h, at, dq)
        pypto.assemble(dk_h, at, dk)
        pypto.assemble(dv_h, at, dv)


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
def score_grad_module12_kernel(
    q: pypto.Tensor([pypto.DYNAMIC, D], pypto.DT_FP32),
    k: pypto.Tensor([pypto.DYNAMIC, D], pypto.DT_FP32),
    v: pypto.Tensor([pypto.DYNAMIC, D], pypto.DT_FP32),
    dout: pypto.Tensor([pypto.DYNAMIC, D], pypto.DT_FP32),
    lse: pypto.Tensor([pypto.DYNAMIC, 1], pypto.DT_FP32),
    dot: pypto.Tensor([pypto.DYNAMIC, 1], pypto.DT_FP32),
    dq: pypto.Tensor([pypto.DYNAMIC, D], pypto.DT_FP32),
    dk: pypto.Tensor([pypto.DYNAMIC, D], pypto.DT_FP32),
    dv: pypto.Tensor([pypto.DYNAMIC, D], pypto.DT_FP32),
):
    _score_grad_module12_kernel_impl(q, k, v, dout, lse, dot, dq, dk, dv)


def score_grad_module12_wrapper(q, k, v, dout, row_lse, row_dot):
    """All [BH, 16, 32] fp32, the two row tensors [BH, 16, 1]; returns (dq, dk, dv)."""
    shape = q.shape
    flat = [t.reshape(-1, t.shape[-1]).contiguous() for t in (q, k, v, dout, row_lse, row_dot)]
    grads = [torch.empty_like(flat[0]), torch.empty_like(flat[1]), torch.empty_like(flat[2])]
    score_grad_module12_kernel(*flat, *grads)
    return tuple(g.view(shape) for g in grads)
