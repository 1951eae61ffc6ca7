import os

import torch
import torch_npu
import pypto

torch.npu.set_device(int(os.environ.get("TILE_FWK_DEVICE_ID", "0")))

H = 64
ROWS = 16


def _build(dtype):
    @pypto.frontend.jit()
    def demo_kernel(x: pypto.Tensor([64, H], dtype), y):
        pypto.set_vec_tile_shapes(ROWS, H)
        y[:] = pypto.exp(x)

    return demo_kernel


def demo_wrapper(x):
    y = torch.empty_like(x)
    _build(pypto.DT_FP32)(x, y)
    return y
