import os

import torch
import torch_npu
import pypto

torch.npu.set_device(int(os.environ.get("TILE_FWK_DEVICE_ID", "0")))

H = 64
ROWS = 16
_TYPES = ((torch.float32, pypto.DT_FP32), (torch.float16, pypto.DT_FP16))
_cache = {}


def _build(dtype):
    @pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
    def demo_kernel(
        x: pypto.Tensor([pypto.DYNAMIC, H], dtype),
        y: pypto.Tensor([pypto.DYNAMIC, H], dtype),
    ):
        pypto.set_vec_tile_shapes(ROWS, H)
        for i in pypto.loop(x.shape[0] // ROWS, name="ROWS", idx_name="i"):
            tile = pypto.view(x, [ROWS, H], [i * ROWS, 0])
            pypto.assemble(pypto.exp(tile), [i * ROWS, 0], y)

    return demo_kernel


def _kernel_for(dtype):
    for known, own in _TYPES:
        if known is dtype:
            if own not in _cache:
                _cache[own] = _build(own)
            return _cache[own]
    raise TypeError(dtype)


def demo_wrapper(x):
    y = torch.empty_like(x)
    _kernel_for(x.dtype)(x, y)
    return y
