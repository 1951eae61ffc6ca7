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
def ks(x_ptr, o_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o_ptr + tl.program_id(0), tl.sum(tl.load(x_ptr + i, mask=i < n, other=0.0), axis=0))


class ModelNew(nn.Module):
    def forward(self, x):
        n = x.numel()
        b = triton.cdiv(n, 256)
        part = torch.empty((b,), device=x.device, dtype=torch.float32)
        ks[(b,)](x, part, n, B=256)
        o = torch.empty((), device=x.device, dtype=x.dtype)
        ks[(1,)](part, o, b, B=triton.next_power_of_2(b))
        return o
