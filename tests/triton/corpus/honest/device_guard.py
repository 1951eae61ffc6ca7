import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def k(x_ptr, o_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=m), mask=m)

import contextlib


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        with torch.cuda.device(x.device) if x.is_cuda else contextlib.nullcontext():
            k[(triton.cdiv(x.numel(), 256),)](x, o, x.numel(), B=256)
        return o
