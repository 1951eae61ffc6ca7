"""Rotary position embedding (half-split form).

    out = [x1 * cos - x2 * sin, x2 * cos + x1 * sin]   with x = [x1, x2]
"""

import os

import torch
import torch_npu  # noqa: F401

import pypto

DEVICE_ID = int(os.environ.get("TILE_FWK_DEVICE_ID", "0"))
torch.npu.set_device(DEVICE_ID)

D: int = 64
HALF: int = D // 2
TILE: int = 16


# <<< SNAPSHOT:SIG_IMPL
# >>> SNAPSHOT:SIG_IMPL
def _rotary_embed_kernel_impl(x, cos, sin, out):
    total = x.shape[0]
    # <<< SNAPSHOT:before_nt_loop
    # >>> SNAPSHOT:before_nt_loop
    for i in pypto.loop((total + TILE - 1) // TILE, name="POS", idx_name="i"):
        pypto.set_vec_tile_shapes(TILE, HALF)
        off = i * TILE
        valid = [pypto.min(total - off, TILE), HALF]
        first = pypto.view(x, [TILE, HALF], [off, 0], valid_shape=valid)
        second = pypto.view(x, [TILE, HALF], [off, HALF], valid_shape=valid)
        c = pypto.view(cos, [TILE, HALF], [off, 0], valid_shape=valid)
        s = pypto.view(sin, [TILE, HALF], [off, 0], valid_shape=valid)
        # <<< SNAPSHOT:inside_nt_loop
        # >>> SNAPSHOT:inside_nt_loop
        pypto.assemble(pypto.sub(first.mul(c), second.mul(s)), [off, 0], out)
        pypto.assemble(second.mul(c).add(first.mul(s)), [off, HALF], out)
    # <<< SNAPSHOT:after_nt_loop
    # >>> SNAPSHOT:after_nt_loop


# <<< SNAPSHOT:SIG_JIT
# >>> SNAPSHOT:SIG_JIT
@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
def rotary_embed_kernel(
    x: pypto.Tensor([pypto.DYN, D], pypto.DT_FP32),
    cos: pypto.Tensor([pypto.DYN, HALF], pypto.DT_FP32),
    sin: pypto.Tensor([pypto.DYN, HALF], pypto.DT_FP32),
    out: pypto.Tensor([pypto.DYN, D], pypto.DT_FP32),
):
    # <<< SNAPSHOT:CALL_IMPL
    _rotary_embed_kernel_impl(x, cos, sin, out)
    # >>> SNAPSHOT:CALL_IMPL


def rotary_embed_wrapper(x, cos, sin):
    """x [T, 64], cos and sin [T, 32], fp32; returns [T, 64]."""
    # <<< SNAPSHOT:HOST_WRAPPER_INSPECT_ALLOC
    # >>> SNAPSHOT:HOST_WRAPPER_INSPECT_ALLOC
    out = torch.empty(x.size(), dtype=x.dtype, device=x.device)
    # <<< SNAPSHOT:HOST_WRAPPER_INSPECT_PASS
    # >>> SNAPSHOT:HOST_WRAPPER_INSPECT_PASS
    rotary_embed_kernel(x, cos, sin, out)
    return out
