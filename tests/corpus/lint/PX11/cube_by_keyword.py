import os

import torch
import torch_npu
import pypto

torch.npu.set_device(int(os.environ.get("TILE_FWK_DEVICE_ID", "0")))

M = K = N = 64


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
def demo_kernel(
    a: pypto.Tensor([M, K], pypto.DT_FP16),
    b: pypto.Tensor([K, N], pypto.DT_FP16),
    y: pypto.Tensor([M, N], pypto.DT_FP32),
):
    pypto.set_cube_tile_shapes(n=[64, 128], k=[64, 64], m=[128, 256])
    pypto.set_vec_tile_shapes(16, 64)
    y[:] = pypto.matmul(a, b, pypto.DT_FP32)


def demo_wrapper(a, b):
    y = torch.empty((a.shape[0], b.shape[1]), dtype=torch.float32, device=a.device)
    demo_kernel(a, b, y)
    return y
