import torch
import torch_npu
import pypto

torch.npu.set_device(0)


@pypto.frontend.jit
def demo_kernel(x: pypto.Tensor([pypto.DYNAMIC, 128], pypto.DT_FP32), y: pypto.Tensor([pypto.DYNAMIC, 128], pypto.DT_FP32)):
    pypto.set_vec_tile_shapes(64, 128)
    (B, S), z = x.shape, 1
    y[:] = pypto.exp(x)


def demo_wrapper(x):
    y = torch.empty_like(x)
    demo_kernel(x, y)
    return y
