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
):
    pypto.set_vec_tile_shapes(ROWS, H)
    for i in pypto.loop(2, name="FIRST", idx_name="i", unroll_list=[2]):
        pypto.assemble(pypto.exp(pypto.view(x, [ROWS, H], [i * ROWS, 0])), [i * ROWS, 0], y)
    for j in pypto.loop(2, name="SECOND", idx_name="j", unroll_list=[2]):
        row = (j + 2) * ROWS
        pypto.assemble(pypto.exp(pypto.view(x, [ROWS, H], [row, 0])), [row, 0], y)


def demo_wrapper(x):
    y = torch.empty_like(x)
    demo_kernel(x, y)
    return y
