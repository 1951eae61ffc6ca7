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
    table: pypto.Tensor([pypto.DYNAMIC, 1], pypto.DT_INT32),
    y: pypto.Tensor([pypto.DYNAMIC, H], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(ROWS, H)
    for b in pypto.loop(table.shape[0], name="PAGES", idx_name="b"):
        page = table[b, 0]
        block = pypto.view(x, [ROWS, H], [page * ROWS, 0])
        pypto.assemble(pypto.clone(block), [b * ROWS, 0], y)


def demo_wrapper(x, table):
    y = torch.empty((table.numel() * ROWS, H), dtype=x.dtype, device=x.device)
    demo_kernel(x, table, y)
    return y
