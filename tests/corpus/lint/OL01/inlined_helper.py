import os

import torch
import torch_npu
import pypto

torch.npu.set_device(int(os.environ.get("TILE_FWK_DEVICE_ID", "0")))

H = 64
ROWS = 16


@pypto.frontend.function
def demo_exp(
    a: pypto.Tensor([ROWS, H], pypto.DT_FP32),
    b: pypto.Tensor([ROWS, H], pypto.DT_FP32),
):
    b[:] = pypto.exp(a)


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
def demo_kernel(
    x: pypto.Tensor([ROWS, H], pypto.DT_FP32),
    y: pypto.Tensor([ROWS, H], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(ROWS, H)
    for _ in pypto.loop(1, name="ONCE", idx_name="once"):
        demo_exp(x, y)


def demo_wrapper(x):
    y = torch.empty_like(x)
    demo_kernel(x, y)
    return y
