import os

import torch
import torch_npu
import pypto as pt

torch.npu.set_device(int(os.environ.get("TILE_FWK_DEVICE_ID", "0")))

H = 64
ROWS = 16


@pt.frontend.jit(runtime_options={"run_mode": pt.RunMode.NPU})
def demo_kernel(
    x: pt.Tensor([pt.DYNAMIC, H], pt.DT_FP32),
    y: pt.Tensor([pt.DYNAMIC, H], pt.DT_FP32),
):
    pt.set_vec_tile_shapes(ROWS, H)
    rows = x.shape[0]
    for i in pt.loop((rows + ROWS - 1) // ROWS, name="ROWS", idx_name="i"):
        left = pt.min(rows - i * ROWS, ROWS)
        tile = pt.view(x, [ROWS, H], [i * ROWS, 0], valid_shape=[left, H])
        pt.assemble(pt.exp(tile), [i * ROWS, 0], y)


def demo_wrapper(x):
    y = torch.empty_like(x)
    demo_kernel(x, y)
    return y
