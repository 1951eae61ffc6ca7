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
    rows = x.shape[0]
    for i in pypto.loop((rows + ROWS - 1) // ROWS, name="ROWS", idx_name="i"):
        left = pypto.min(rows - i * ROWS, ROWS)
        tile = pypto.view(x, [ROWS, H], [i * ROWS, 0], valid_shape=[left, H])
        pypto.assemble(pypto.exp(tile), [i * ROWS, 0], y)


def _s0(x, y):
    demo_kernel(x, y)


def _s1(x, y):
    _s0(x, y)


def _s2(x, y):
    _s1(x, y)


def _s3(x, y):
    _s2(x, y)


def _s4(x, y):
    _s3(x, y)


def _s5(x, y):
    _s4(x, y)


def _s6(x, y):
    _s5(x, y)


def _s7(x, y):
    _s6(x, y)


def _s8(x, y):
    _s7(x, y)


def _s9(x, y):
    _s8(x, y)


def demo_wrapper(x):
    y = torch.empty_like(x)
    _s9(x, y)
    return y
