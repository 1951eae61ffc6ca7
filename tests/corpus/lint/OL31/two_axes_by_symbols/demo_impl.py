import os

import torch
import torch_npu
import pypto

torch.npu.set_device(int(os.environ.get("TILE_FWK_DEVICE_ID", "0")))

H = 64
ROWS = 16


B, T = pypto.frontend.dynamic("B"), pypto.frontend.dynamic("T")


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
def demo_kernel(
    x: pypto.Tensor([B, T, H], pypto.DT_FP32),
    y: pypto.Tensor([B, T, H], pypto.DT_FP32),
):
    for b in pypto.loop(x.shape[0], name="B", idx_name="b"):
        pypto.set_vec_tile_shapes(1, ROWS, H)
        for i in pypto.loop((x.shape[1] + ROWS - 1) // ROWS, name="ROWS", idx_name="i"):
            left = pypto.min(x.shape[1] - i * ROWS, ROWS)
            tile = pypto.view(x, [1, ROWS, H], [b, i * ROWS, 0], valid_shape=[1, left, H])
            pypto.assemble(pypto.exp(tile), [b, i * ROWS, 0], y)


def demo_wrapper(x):
    y = torch.empty_like(x)
    demo_kernel(x, y)
    return y
