import os

import torch
import torch_npu
import pypto

torch.npu.set_device(int(os.environ.get("TILE_FWK_DEVICE_ID", "0")))

H = 64
ROWS = 16


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
def demo_kernel(
    x: pypto.Tensor([64, H], pypto.DT_FP32),
    y: pypto.Tensor([ROWS, H], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(ROWS, H)
    acc = pypto.tensor([ROWS, H], pypto.DT_FP32, "acc")
    for i in pypto.loop(4, name="ROWS", idx_name="i"):
        tile = pypto.view(x, [ROWS, H], [i * ROWS, 0])
        if pypto.is_loop_begin(i):
            acc[:] = pypto.exp(tile)
        else:
            acc[:] = acc + pypto.exp(tile)
        if pypto.is_loop_end(i):
            pypto.assemble(acc, [0, 0], y)


def demo_wrapper(x):
    y = x.new_empty((ROWS, H))
    demo_kernel(x, y)
    return y
