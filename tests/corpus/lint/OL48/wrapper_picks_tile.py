import functools
import os

import torch
import torch_npu
import pypto

torch.npu.set_device(int(os.environ.get("TILE_FWK_DEVICE_ID", "0")))

H = 64


@functools.lru_cache(maxsize=None)
def _build(rows):
    @pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
    def demo_kernel(
        x: pypto.Tensor([pypto.DYNAMIC, H], pypto.DT_FP32),
        y: pypto.Tensor([pypto.DYNAMIC, H], pypto.DT_FP32),
    ):
        pypto.set_vec_tile_shapes(rows, H)
        y[:] = pypto.exp(x)

    return demo_kernel


def demo_wrapper(x):
    y = torch.empty_like(x)
    _build(x.shape[0])(x, y)
    return y


if __name__ == "__main__":
    _build(16)
