from __future__ import annotations

import contextlib
import functools

import torch
import torch.nn as nn
import triton.language as tl

import triton


@triton.jit
def exp_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.exp(tl.load(x_ptr + offsets, mask=mask)), mask=mask)


def input_guard(fn):
    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        contiguous_args = (i if not isinstance(i, torch.Tensor) else i.contiguous() for i in args)
        tensor = None
        for arg in args:
            if isinstance(arg, torch.Tensor):
                tensor = arg
                break
        if tensor is not None:
            ctx = torch.cuda.device(tensor.device.index)
        else:
            ctx = contextlib.nullcontext()
        with ctx:
            return fn(*contiguous_args, **kwargs)

    return wrapper


class F(torch.autograd.Function):
    @staticmethod
    @input_guard
    def forward(ctx, x):
        out = torch.empty_like(x)
        exp_kernel[(triton.cdiv(x.numel(), 512),)](x, out, x.numel(), BLOCK=512)
        ctx.save_for_backward(out)
        return out

    @staticmethod
    @input_guard
    def backward(ctx, g):
        (out,) = ctx.saved_tensors
        return g * out


def launch(x):
    return F.apply(x)


class ModelNew(nn.Module):
    def forward(self, x):
        return launch(x)
