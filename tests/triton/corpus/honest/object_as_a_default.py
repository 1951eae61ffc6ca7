"""The constructor has an object as its default, and forward calls its method."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def exp_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.exp(tl.load(x_ptr + offsets, mask=offsets < n)), mask=offsets < n)


class Tiles:
    size = 512

    def grid(self, n):
        return (triton.cdiv(n, self.size),)


class ModelNew(nn.Module):
    def __init__(self, tiles=Tiles()):
        super().__init__()
        self.tiles = tiles

    def forward(self, x):
        out = torch.empty_like(x)
        exp_kernel[self.tiles.grid(x.numel())](x, out, x.numel(), BLOCK=512)
        return out
