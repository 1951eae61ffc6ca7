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


class Args(NamedTuple):
    x_ptr: torch.Tensor
    out_ptr: torch.Tensor
    n: int


def launch(x):
    args = Args(x, torch.empty_like(x), x.numel())
    exp_kernel[(triton.cdiv(args.n, 512),)](**args._asdict(), BLOCK=512)
    exp_kernel[(triton.cdiv(args.n, 512),)](*args, BLOCK=512)
    return args.out_ptr


class ModelNew(nn.Module):
    def forward(self, x):
        return launch(x)
