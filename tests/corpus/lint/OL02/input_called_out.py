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
    out_scale: pypto.Tensor([1, H], pypto.DT_FP16),
    y: pypto.Tensor([64, H], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(ROWS, H)
    out_scale = pypto.cast(out_scale, pypto.DT_FP32)
    y[:] = x * out_scale


def demo_wrapper(x, out_scale):
    y = torch.empty_like(x)
    demo_kernel(x, out_scale, y)
    return y
