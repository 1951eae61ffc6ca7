"""The `run` that the brackets of KernelInterface call computes with PyTorch first."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def exp_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.exp(tl.load(x_ptr + offsets, mask=offsets < n)), mask=offsets < n)


class Entry(triton.KernelInterface):
    def __init__(self, fn):
        self.fn = fn

    def run(self, *args, **kwargs):
        torch.exp(args[0])
        return self.fn.run(*args, **kwargs)


entry = Entry(exp_kernel)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        entry[(triton.cdiv(x.numel(), 512),)](x, out, x.numel(), BLOCK=512)
        return out
