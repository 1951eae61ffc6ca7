"""Scratch memory grows with the input and is kept."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def k(x_ptr, o_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    tl.store(o_ptr + i, tl.exp(tl.load(x_ptr + i, mask=m)), mask=m)


def run(x):
    o = torch.empty_like(x)
    k[(triton.cdiv(x.numel(), 256),)](x, o, x.numel(), B=256)
    return o



class ModelNew(nn.Module):
    def __init__(self, *a):
        super().__init__()
        self.ws = None

    def forward(self, x):
        n = x.numel()
        if self.ws is None or self.ws.numel() < n:
            self.ws = torch.empty(n, device=x.device, dtype=x.dtype)
        k[(triton.cdiv(n, 256),)](x, self.ws, n, B=256)
        o = torch.empty_like(x)
        k[(triton.cdiv(n, 256),)](self.ws, o, n, B=256)
        return o
