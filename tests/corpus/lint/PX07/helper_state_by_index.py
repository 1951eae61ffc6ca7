import os

import torch
import torch_npu
import pypto

torch.npu.set_device(int(os.environ.get("TILE_FWK_DEVICE_ID", "0")))

H = 64
ROWS = 16


def load_state(source, at):
    return pypto.view(source, [8, H], [at, 0])


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
def demo_kernel(
    x: pypto.Tensor([pypto.DYNAMIC, H], pypto.DT_FP32),
    states: pypto.Tensor([pypto.DYNAMIC, H], pypto.DT_FP32),
    y: pypto.Tensor([pypto.DYNAMIC, H], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(16, 64)
    for i in pypto.loop((x.shape[0] + ROWS - 1) // ROWS, name="ROWS", idx_name="i"):
        pypto.assemble(pypto.exp(load_state(states, i * 8)), [i * 8, 0], y)


def demo_wrapper(x, states):
    y = torch.empty_like(states)
    demo_kernel(x, states, y)
    return y
