"""A word says which reduction follows, behind a decorator that makes tensors contiguous; here none does."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def exp_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.exp(tl.load(x_ptr + offsets, mask=offsets < n)), mask=offsets < n)


NONE, SUM, MEAN = "none", "sum", "mean"


def plain(function):
    def wrapper(*args, **kwargs):
        return function(*[arg.contiguous() if isinstance(arg, torch.Tensor) else arg for arg in args], **kwargs)

    return wrapper


@plain
def exp(x, reduction):
    out = torch.empty_like(x)
    exp_kernel[(triton.cdiv(x.numel(), 512),)](x, out, x.numel(), BLOCK=512)
    if reduction in (SUM, MEAN):
        return out.sum()
    return out


class ModelNew(nn.Module):
    def forward(self, x):
        return exp(x, "none")
