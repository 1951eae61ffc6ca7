import os

import torch
import torch_npu
import pypto

torch.npu.set_device(int(os.environ.get("TILE_FWK_DEVICE_ID", "0")))

H = 64
ROWS = 16


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
def demo_kernel(
    x: pypto.Tensor([64, H], pypto.DT_FP32),
    y: pypto.Tensor([64, H], pypto.DT_FP32),
    gain,
):
    pypto.set_vec_tile_shapes(ROWS, H)
    y[:] = x * gain


def demo_wrapper(x):
    tensors = [x, torch.empty_like(x)]
    demo_kernel(*tensors, 2.0)
    return tensors[1]
