"""An argument without annotation is made a float."""

import math
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def k(x_ptr, o_ptr, n, s, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=m) * s, mask=m)


@triton.jit
def k2(x_ptr, y_ptr, o_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=m) * tl.load(y_ptr + i, mask=m), mask=m)


def run(x, s):
    o = torch.empty_like(x)
    k[(triton.cdiv(x.numel(), 256),)](x, o, x.numel(), s, B=256)
    return o


def run2(x, y):
    o = torch.empty_like(x)
    k2[(triton.cdiv(x.numel(), 256),)](x, y, o, x.numel(), B=256)
    return o


class ModelNew(nn.Module):
    def forward(self, x, s):
        return run(x, float(s))
