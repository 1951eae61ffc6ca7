"""Linear attention with a carried [D, D] state, in chunks of C tokens.

    inside a chunk:   o = (q k^T * tril) v + q state
    between chunks:   state = state + k^T v
"""

import os

import torch
import torch_npu  # noqa: F401

import pypto

torch.npu.set_device(int(os.environ.get("TILE_FWK_DEVICE_ID", "0")))

C = 16
D = 32


def _mm(left, right, **flags):
    """fp32 product of two small tiles; the flags are matmul's transpose switches."""
    pypto.set_cube_tile_shapes([16, 32], [16, 32], [16, 32])
    return pypto.matmul(left, right, pypto.DT_FP32, **flags)


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
def decay_linear_attention_kernel(
    q: pypto.Tensor([pypto.DYNAMIC, D], pypto.DT_FP32),
    k: pypto.Tensor([pypto.DYNAMIC, D], pypto.DT_FP32),
    v: pypto.Tensor([pypto.DYNAMIC, D], pypto.DT_FP32),
    mask: pypto.Tensor([C, C], pypto.DT_FP32),
    out: pypto.Tensor([pypto.DYNAMIC, D], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(16, 32)
    state = pypto.tensor([D, D], pypto.DT_FP32, "state")
    for c in pypto.loop(q.shape[0] // C, name="CHUNKS", idx_name="c"):
        at = [c * C, 0]
        q_c = pypto.view(q, [C, D], at)
        k_c = pypto.view(k, [C, D], at)
        v_c = pypto.view(v, [C, D], at)
        inside = _mm(_mm(q_c, k_c, b_trans=True) * mask, v_c)
        added = _mm(k_c, v_c, a_trans=True)
        if pypto.is_loop_begin(c):
            pypto.assemble(inside, at, out)
            state[:] = added
        else:
            pypto.assemble(inside + _mm(q_c, state), at, out)
            state[:] = state + added


def decay_linear_attention_wrapper(q, k, v):
    """q, k, v [T, 32] fp32, T a multiple of 16; returns [T, 32] fp32."""
    tokens = q.shape[0]
    assert tokens % C == 0, "pad the sequence to whole chunks first"
    mask = torch.tril(torch.ones((C, C), dtype=torch.float32, device=q.device))
    out = torch.empty_like(q)
    decay_linear_attention_kernel(q, k, v, mask, out)
    return out
