"""Atomics into zeros."""

import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl


@triton.jit
def add(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.atomic_add(out_ptr, tl.sum(tl.load(x_ptr + offsets)))


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.zeros_like(x)
        add[(1,)](x, out, BLOCK=256)
        return out
