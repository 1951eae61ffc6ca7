from __future__ import annotations

from collections import defaultdict

import torch
import torch.nn as nn
import triton.language as tl

import triton


@triton.jit
def exp_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.exp(tl.load(x_ptr + offsets, mask=mask)), mask=mask)


@triton.jit
def half_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, tl.exp(x).to(out_ptr.dtype.element_ty), mask=mask)


TABLE = defaultdict(lambda: half_kernel, {torch.float32: exp_kernel})


def launch(x):
    out = torch.empty_like(x)
    TABLE[x.dtype][(triton.cdiv(x.numel(), 512),)](x, out, x.numel(), BLOCK=512)
    return out


class ModelNew(nn.Module):
    def forward(self, x):
        return launch(x)
