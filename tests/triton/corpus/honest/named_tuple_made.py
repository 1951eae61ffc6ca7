from __future__ import annotations

import collections
from collections import namedtuple

import torch
import torch.nn as nn
import triton.language as tl

import triton


@triton.jit
def exp_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.exp(tl.load(x_ptr + offsets, mask=mask)), mask=mask)


Pack = namedtuple("Pack", "x out")
Sizes = collections.namedtuple("Sizes", ["n", "block"])


def launch(x):
    p = Pack(x=x, out=torch.empty_like(x))
    s = Sizes(x.numel(), 512)
    exp_kernel[(triton.cdiv(s.n, s.block),)](p.x, p.out, s.n, BLOCK=s.block)
    return p.out


class ModelNew(nn.Module):
    def forward(self, x):
        return launch(x)
