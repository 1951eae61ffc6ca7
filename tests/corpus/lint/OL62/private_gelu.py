import functools
import operator
import numpy as np
import torch
import torch_npu
import pypto

torch.npu.set_device(0)


@pypto.frontend.jit
def demo_kernel(x: pypto.Tensor([pypto.DYNAMIC, 128], pypto.DT_FP32), y: pypto.Tensor([pypto.DYNAMIC, 128], pypto.DT_FP32)):
    pypto.set_vec_tile_shapes(64, 128)
    n = x.shape[0]
    for i in pypto.loop((n + 63) // 64, name='L', idx_name='i'):
        t = pypto.view(x, [64, 128], [i * 64, 0], valid_shape=[pypto.min(n - i * 64, 64), 128])
        pypto.assemble(pypto.exp(t), [i * 64, 0], y)


def demo_wrapper(x):
    y = torch.empty_like(x)
    x = torch._C._nn.gelu(x)
    demo_kernel(x, y)
    return y
