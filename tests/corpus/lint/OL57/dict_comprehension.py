import os

import torch
import torch_npu
import pypto

torch.npu.set_device(int(os.environ.get("TILE_FWK_DEVICE_ID", "0")))

H = 64
ROWS = 16


def _rows(x):
    parts = {j: pypto.exp(pypto.view(x, [32, H], [j * 32, 0])) for j in range(2)}
    return pypto.concat([parts[0], parts[1]], 0)


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
def demo_kernel(
    x: pypto.Tensor([64, H], pypto.DT_FP32),
    y: pypto.Tensor([64, H], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(ROWS, H)
    y[:] = _rows(x)


def demo_wrapper(x):
    y = torch.empty_like(x)
    demo_kernel(x, y)
    return y
