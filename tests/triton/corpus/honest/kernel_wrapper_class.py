import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def k(x_ptr, o_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=m), mask=m)

class CopyOp:
    def __init__(self, block=256):
        self.block = block

    def __call__(self, x):
        o = torch.empty_like(x)
        k[(triton.cdiv(x.numel(), self.block),)](x, o, x.numel(), B=self.block)
        return o


class ModelNew(nn.Module):
    def __init__(self, *a):
        super().__init__()
        self.op = CopyOp()

    def forward(self, x):
        return self.op(x)
