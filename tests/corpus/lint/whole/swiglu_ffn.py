"""Gated feed-forward block: out = (silu(x @ w_gate) * (x @ w_up)) @ w_down.

Layers, from the outside in:
    K  swiglu_ffn_wrapper        allocates the output and launches once
    J  swiglu_ffn_kernel         thin JIT entry: annotations and nothing else
    I  _swiglu_ffn_kernel_impl   the loop over tiles of tokens
    H  pypto_*                   one sub-kernel per stage, each with its own tiles
"""

import os

import torch
import torch_npu  # noqa: F401

import pypto

torch.npu.set_device(int(os.environ.get("TILE_FWK_DEVICE_ID", "0")))

# ---- Layer D: host constants -------------------------------------------------------------------------------
D_MODEL = 128
D_FF = 256
TOKENS = 32
VEC_TILE = (16, 64)
CUBE_M = [32, 32]
CUBE_K = [64, 128]
CUBE_N = [64, 128]


# ---- Layer H: sub-kernels ----------------------------------------------------------------------------------
def pypto_project(tokens, weight):
    """[TOKENS, K] @ [K, N] with fp32 accumulation."""
    pypto.set_cube_tile_shapes(CUBE_M, CUBE_K, CUBE_N)
    return pypto.matmul(tokens, weight, pypto.DT_FP32)


def pypto_silu(gate):
    """gate * sigmoid(gate), with the sigmoid written out."""
    pypto.set_vec_tile_shapes(*VEC_TILE)
    one_plus = pypto.exp(gate * -1.0) + 1.0
    return pypto.div(gate, one_plus)


# ---- Layer I: kernel body ----------------------------------------------------------------------------------
def _swiglu_ffn_kernel_impl(x, w_gate, w_up, w_down, out):
    tokens = x.shape[0]
    for t in pypto.loop((tokens + TOKENS - 1) // TOKENS, name="TOKENS", idx_name="t"):
        pypto.set_vec_tile_shapes(*VEC_TILE)
        left = pypto.min(tokens - t * TOKENS, TOKENS)
        tile = pypto.view(x, [TOKENS, D_MODEL], [t * TOKENS, 0], valid_shape=[left, D_MODEL])
        gate = pypto_silu(pypto_project(tile, w_gate))
        up = pypto_project(tile, w_up)
        hidden = pypto.cast(gate * up, pypto.DT_FP16)
        down = pypto_project(hidden, w_down)
        pypto.assemble(pypto.cast(down, pypto.DT_FP16), [t * TOKENS, 0], out)


# ---- Layer J: JIT entry ------------------------------------------------------------------------------------
@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
def swiglu_ffn_kernel(
    x: pypto.Tensor([pypto.DYNAMIC, D_MODEL], pypto.DT_FP16),
    w_gate: pypto.Tensor([D_MODEL, D_FF], pypto.DT_FP16),
    w_up: pypto.Tensor([D_MODEL, D_FF], pypto.DT_FP16),
    w_down: pypto.Tensor([D_FF, D_MODEL], pypto.DT_FP16),
    out: pypto.Tensor([pypto.DYNAMIC, D_MODEL], pypto.DT_FP16),
):
    _swiglu_ffn_kernel_impl(x, w_gate, w_up, w_down, out)


# ---- Layer K: host wrapper ---------------------------------------------------------------------------------
def swiglu_ffn_wrapper(
    x: torch.Tensor, w_gate: torch.Tensor, w_up: torch.Tensor, w_down: torch.Tensor
) -> torch.Tensor:
    """x [T, 128], w_gate and w_up [128, 256], w_down [256, 128], all fp16; returns [T, 128] fp16."""
    out = torch.empty_like(x)
    swiglu_ffn_kernel(x, w_gate, w_up, w_down, out)
    return out
