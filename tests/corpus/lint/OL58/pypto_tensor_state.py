import os

import torch
import torch_npu
import pypto

torch.npu.set_device(int(os.environ.get("TILE_FWK_DEVICE_ID", "0")))

H = 64
ROWS = 16


def _demo_kernel_impl(x, y):
    state = pypto.tensor([ROWS, H], pypto.DT_FP32, "state")
    pypto.set_vec_tile_shapes(ROWS, H)
    for i in pypto.loop(x.shape[0] // ROWS, name="ROWS", idx_name="i"):
        tile = pypto.view(x, [ROWS, H], [i * ROWS, 0])
        if pypto.cond(pypto.is_loop_begin(i)):
            state[:] = pypto.exp(tile)
        else:
            state[:] = state + pypto.exp(tile)
        pypto.assemble(state, [i * ROWS, 0], y)


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
def demo_kernel(
    x: pypto.Tensor([pypto.DYNAMIC, H], pypto.DT_FP32),
    y: pypto.Tensor([pypto.DYNAMIC, H], pypto.DT_FP32),
):
    _demo_kernel_impl(x, y)


def demo_wrapper(x):
    y = torch.empty_like(x)
    demo_kernel(x, y)
    return y
