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


class Launch:
    def __init__(self, x, block=512):
        self.x = x.contiguous()
        self.out = torch.empty_like(x)
        self.n = x.numel()
        self.block = block

    def grid(self):
        return (triton.cdiv(self.n, self.block),)

    def run(self):
        exp_kernel[self.grid()](self.x, self.out, self.n, BLOCK=self.block)
        return self.out


def launch(x):
    return Launch(x).run()


class ModelNew(nn.Module):
    def forward(self, x):
        return launch(x)
