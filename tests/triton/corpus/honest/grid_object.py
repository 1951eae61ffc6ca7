from __future__ import annotations

import torch
import torch.nn as nn
import triton.language as tl

import triton


@triton.jit
def exp_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.exp(tl.load(x_ptr + offsets, mask=mask)), mask=mask)


class Grid:
    def __init__(self, n):
        self.n = n

    def __call__(self, meta):
        return (triton.cdiv(self.n, meta["BLOCK"]),)


def launch(x):
    out = torch.empty_like(x)
    exp_kernel[Grid(x.numel())](x, out, x.numel(), BLOCK=512)
    return out


class ModelNew(nn.Module):
    def forward(self, x):
        return launch(x)
