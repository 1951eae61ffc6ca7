import os

import torch
import torch_npu
import pypto

torch.npu.set_device(int(os.environ.get("TILE_FWK_DEVICE_ID", "0")))

H = 64
ROWS = 16
ROWS_OF = {"top": 0, "bottom": 32}


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
def demo_kernel(
    x: pypto.Tensor([64, H], pypto.DT_FP32),
    y: pypto.Tensor([64, H], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(ROWS, H)
    for name, row in ROWS_OF.items():
        pypto.assemble(pypto.exp(pypto.view(x, [32, H], [row, 0])), [row, 0], y)


def demo_wrapper(x):
    y = torch.empty_like(x)
    demo_kernel(x, y)
    return y
