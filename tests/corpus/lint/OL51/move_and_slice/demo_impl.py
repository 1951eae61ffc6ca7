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
    total: pypto.Tensor([64, 1], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(ROWS, H)
    y.move(pypto.exp(x))
    total[:] = pypto.sum(x, -1, keepdim=True)


def demo_wrapper(x):
    y = torch.empty_like(x)
    total = x.new_empty((x.shape[0], 1))
    demo_kernel(x, y, total)
    return y, total
