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
    per_batch = x.shape[0] // batch
    for b in pypto.loop(batch, name="BATCH", idx_name="b"):
        for i in pypto.loop(per_batch // ROWS, name="ROWS", idx_name="i"):
            row = b * per_batch + i * ROWS
            tile = pypto.view(x, [ROWS, H], [row, 0])
            pypto.assemble(pypto.exp(tile), [row, 0], y)


def demo_wrapper(x):
    y = torch.empty_like(x)
    demo_kernel(x, y, 2)
    return y
