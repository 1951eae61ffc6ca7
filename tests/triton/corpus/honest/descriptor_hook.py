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


from triton.tools.tensor_descriptor import TensorDescriptor


def set_block(nargs):
    nargs["x_desc"].block_shape = [nargs["BLOCK"]]
    nargs["o_desc"].block_shape = [nargs["BLOCK"]]


@triton.autotune(configs=[triton.Config({"BLOCK": 512}, pre_hook=set_block)], key=["n"])
@triton.jit
def k(x_desc, o_desc, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK
    o_desc.store([i], tl.exp(x_desc.load([i])))


def launch(x):
    out = torch.empty_like(x)
    xd = TensorDescriptor(x.view(-1), [x.numel()], [1], [1])
    od = TensorDescriptor(out.view(-1), [out.numel()], [1], [1])
    k[lambda META: (triton.cdiv(x.numel(), META["BLOCK"]),)](xd, od, x.numel())
    return out


class ModelNew(nn.Module):
    def forward(self, x):
        return launch(x)
