"""The constructor initialises with PyTorch."""

import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.exp(tl.load(x_ptr + offsets, mask=mask)), mask=mask)


class ModelNew(nn.Module):
    def __init__(self, n=8):
        super().__init__()
        weight = torch.randn(n, n)
        self.weight = nn.Parameter(weight / weight.norm())
        nn.init.zeros_(self.weight)
        self.register_buffer("table", torch.arange(n).float().exp())

    def forward(self, x):
        out = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)
        return out
