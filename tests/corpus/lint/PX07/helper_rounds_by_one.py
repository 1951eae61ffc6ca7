import os

import torch
import torch_npu
import pypto

torch.npu.set_device(int(os.environ.get("TILE_FWK_DEVICE_ID", "0")))

H = 64
ROWS = 16


def load(source, row):
    return pypto.view(source, [ROWS, H], [row, 0])


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
def demo_kernel(
    x: pypto.Tensor([pypto.DYNAMIC, H], pypto.DT_FP32),
    y: pypto.Tensor([pypto.DYNAMIC, H], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(16, 64)
    steps = x.shape[0] // ROWS + 1
    for i in pypto.loop(steps, name="ROWS", idx_name="i"):
        row = i * ROWS
        left = pypto.min(x.shape[0] - row, ROWS)
        tile = load(x, row)
        tile = pypto.exp(tile)
        pypto.assemble(tile, [row, 0], y)


def demo_wrapper(x):
    y = torch.empty_like(x)
    demo_kernel(x, y)
    return y
