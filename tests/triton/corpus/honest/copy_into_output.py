"""The result is copied into a buffer of another layout."""

import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.exp(tl.load(x_ptr + offsets, mask=mask)), mask=mask)


class ModelNew(nn.Module):
    def forward(self, x):
        tmp = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 256),)](x, tmp, x.numel(), BLOCK=256)
        out = torch.empty_like(x.t()).t()
        out.copy_(tmp)
        return out
