import os

import torch
import torch_npu
import pypto

torch.npu.set_device(int(os.environ.get("TILE_FWK_DEVICE_ID", "0")))

H = 64
ROWS = 16


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
def demo_kernel(
    x: pypto.Tensor([2, 32, H], pypto.DT_FP32),
    y: pypto.Tensor([2, 32, H], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(1, 16, 64)
    for b in pypto.loop(2, name="BATCH", idx_name="b"):
        tile = pypto.view(x, [1, 32, H], [b, 0, 0], valid_shape=[1, 32, H])
        pypto.assemble(pypto.exp(tile), [b, 0, 0], y)


def demo_wrapper(x):
    x = x.reshape(2, 32, H)
    y = torch.empty_like(x)
    demo_kernel(x, y)
    return y.view(64, H)
