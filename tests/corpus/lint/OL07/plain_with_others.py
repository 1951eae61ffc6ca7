import os

import torch
import torch_npu
import math as math
import pypto

torch.npu.set_device(int(os.environ.get("TILE_FWK_DEVICE_ID", "0")))

H = 64
ROWS = 16


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
def demo_kernel(
    x: pypto.Tensor([pypto.DYNAMIC, H], pypto.DT_FP32),
    y: pypto.Tensor([pypto.DYNAMIC, H], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(ROWS, H)
    for i in pypto.loop((x.shape[0] + ROWS - 1) // ROWS, name="ROWS", idx_name="i"):
        left = pypto.min(x.shape[0] - i * ROWS, ROWS)
        tile = pypto.view(x, [ROWS, H], [i * ROWS, 0], valid_shape=[left, H])
        pypto.assemble(pypto.exp(tile), [i * ROWS, 0], y)


def demo_wrapper(x):
    y = torch.empty_like(x)
    demo_kernel(x, y)
    return y
