import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def k(x_ptr, o_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=m), mask=m)

@triton.jit
def sq(v):
    return v * v

@triton.jit
def put(p, i, v, m):
    tl.store(p + i, sq(v), mask=m)

@triton.jit
def kk(x_ptr, o_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    put(o_ptr, i, tl.load(x_ptr + i, mask=m), m)


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        kk[(triton.cdiv(x.numel(), 256),)](x, o, x.numel(), B=256)
        return o
