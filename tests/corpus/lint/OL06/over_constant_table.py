import os

import torch
import torch_npu
import pypto

torch.npu.set_device(int(os.environ.get("TILE_FWK_DEVICE_ID", "0")))

H = 64
ROWS = 16
WEIGHTS = {"a": 2.0, "b": 4.0}


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
def demo_kernel(
    x: pypto.Tensor([64, H], pypto.DT_FP32),
    y: pypto.Tensor([64, H], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(ROWS, H)
    scale = 1.0 / max(WEIGHTS.values())
    y[:] = x * scale


def demo_wrapper(x):
    y = torch.empty_like(x)
    demo_kernel(x, y)
    return y
