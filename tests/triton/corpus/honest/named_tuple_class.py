from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn as nn
import triton.language as tl

import triton


@triton.jit
def exp_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.exp(tl.load(x_ptr + offsets, mask=mask)), mask=mask)


class Pack(NamedTuple):
    x: torch.Tensor
    out: torch.Tensor
    n: int = 0


def launch(x):
    p = Pack(x, torch.empty_like(x), n=x.numel())
    exp_kernel[(triton.cdiv(p.n, 512),)](p.x, p.out, p.n, BLOCK=512)
    return p.out


class ModelNew(nn.Module):
    def forward(self, x):
        return launch(x)
