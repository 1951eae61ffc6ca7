import os

import torch
import torch_npu
import pypto

torch.npu.set_device(int(os.environ.get("TILE_FWK_DEVICE_ID", "0")))

from functools import lru_cache

TABLE = {torch.float16: pypto.DT_FP16, torch.float32: pypto.DT_FP32}


@lru_cache(maxsize=None)
def _build(dtype):
    @pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
    def demo_kernel(
        a: pypto.Tensor([64, 64], dtype),
        b: pypto.Tensor([64, 64], dtype),
        y: pypto.Tensor([64, 64], pypto.DT_FP32),
    ):
        if dtype == pypto.DT_FP16:
            pypto.set_cube_tile_shapes([128, 128], [256, 256], [128, 128])
        else:
            pypto.set_cube_tile_shapes([128, 128], [128, 128], [128, 128])
        pypto.set_vec_tile_shapes(16, 64)
        y[:] = pypto.matmul(a, b, pypto.DT_FP32)

    return demo_kernel


def demo_wrapper(a, b):
    y = torch.empty((a.shape[0], b.shape[1]), dtype=torch.float32, device=a.device)
    _build(TABLE[a.dtype])(a, b, y)
    return y
