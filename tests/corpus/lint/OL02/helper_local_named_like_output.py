import os

import torch
import torch_npu
import pypto

torch.npu.set_device(int(os.environ.get("TILE_FWK_DEVICE_ID", "0")))

H = 64
ROWS = 16


def _exp(x):
    y = x * 0.5
    y = pypto.exp(y)
    return y * y


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
def demo_kernel(
    x: pypto.Tensor([64, H], pypto.DT_FP32),
    y: pypto.Tensor([64, H], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(ROWS, H)
    y[:] = _exp(x)


def demo_wrapper(x):
    y = torch.empty_like(x)
    demo_kernel(x, y)
    return y
