import os

import torch
import torch_npu
import pypto

torch.npu.set_device(int(os.environ.get("TILE_FWK_DEVICE_ID", "0")))

H = 64
ROWS = 16


def pypto_product(a, b):
    return pypto.matmul(a, b, pypto.DT_FP32)


def pypto_softmax_rows(t):
    e = pypto.exp(t - pypto.amax(t, -1, keepdim=True))
    return e / pypto.sum(e, -1, keepdim=True)


def _demo_kernel_impl(a, b, y):
    pypto.set_cube_tile_shapes([32, 32], [64, 64], [64, 64])
    pypto.set_vec_tile_shapes(ROWS, H)
    t = pypto_product(a, b)
    pypto.set_vec_tile_shapes(8, H)
    y[:] = pypto_softmax_rows(t)


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
def demo_kernel(
    a: pypto.Tensor([64, 64], pypto.DT_FP32),
    b: pypto.Tensor([64, 64], pypto.DT_FP32),
    y: pypto.Tensor([64, 64], pypto.DT_FP32),
):
    _demo_kernel_impl(a, b, y)


def demo_wrapper(a, b):
    y = torch.empty_like(a)
    demo_kernel(a, b, y)
    return y
