import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def k(x_ptr, o_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=m), mask=m)



class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        match x.dtype:
            case torch.float16:
                b = 128
            case _:
                b = 256
        k[(triton.cdiv(x.numel(), b),)](x, o, x.numel(), B=b)
        return o
