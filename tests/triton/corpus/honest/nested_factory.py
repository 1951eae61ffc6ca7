"""A factory makes the kernel."""

import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl


def make(factor):
    @triton.jit
    def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
        offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n), mask=offsets < n)

    return kernel


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        make(2)[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)
        return out
