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


class Params:
    def __init__(self, **values):
        self._values = values

    def __getattr__(self, name):
        return self._values[name]


def launch(x):
    p = Params(x=x, out=torch.empty_like(x))
    exp_kernel[(triton.cdiv(x.numel(), 512),)](p.x, p.out, x.numel(), BLOCK=512)
    return p.out


class ModelNew(nn.Module):
    def forward(self, x):
        return launch(x)
