import os

import torch
import torch_npu
import pypto

torch.npu.set_device(int(os.environ.get("TILE_FWK_DEVICE_ID", "0")))

H = 64
ROWS = 16


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
def demo_kernel(
    x: pypto.Tensor([pypto.DYNAMIC, H], pypto.DT_FP32),
    y: pypto.Tensor([pypto.DYNAMIC, H], pypto.DT_FP32),
    batch: int,
):
    pypto.set_vec_tile_shapes(ROWS, H)
    for b in pypto.loop(batch, name="BATCH", idx_name="b"):
        for i in pypto.loop(4, name="ROWS", idx_name="i"):
            row = (b * 4 + i) * ROWS
            pypto.assemble(pypto.exp(pypto.view(x, [ROWS, H], [row, 0])), [row, 0], y)


def demo_wrapper(x):
    y = torch.empty_like(x)
    demo_kernel(x, y, x.shape[0] // 64)
    return y
