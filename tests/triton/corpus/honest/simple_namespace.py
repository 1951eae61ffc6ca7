from __future__ import annotations

import types

import torch
import torch.nn as nn
import triton.language as tl

import triton


@triton.jit
def exp_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.exp(tl.load(x_ptr + offsets, mask=mask)), mask=mask)


def launch(x):
    a = types.SimpleNamespace(x=x, out=torch.empty_like(x), n=x.numel())
    exp_kernel[(triton.cdiv(a.n, 512),)](a.x, a.out, a.n, BLOCK=512)
    return a.out


class ModelNew(nn.Module):
    def forward(self, x):
        return launch(x)
