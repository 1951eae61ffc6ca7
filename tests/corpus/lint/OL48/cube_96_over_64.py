import os

import torch
import torch_npu
import pypto

torch.npu.set_device(int(os.environ.get("TILE_FWK_DEVICE_ID", "0")))

H = 64
ROWS = 16


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
def demo_kernel(
    a: pypto.Tensor([64, 64], pypto.DT_FP32),
    b: pypto.Tensor([64, 64], pypto.DT_FP32),
    y: pypto.Tensor([64, 64], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(ROWS, H)
    pypto.set_cube_tile_shapes([32, 32], [64, 96], [64, 64])
    y[:] = pypto.matmul(a, b, pypto.DT_FP32)


def demo_wrapper(a, b):
    y = torch.empty_like(a)
    demo_kernel(a, b, y)
    return y
