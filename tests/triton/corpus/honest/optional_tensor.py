"""An optional argument."""

import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl


@triton.jit
def kernel3(x_ptr, b_ptr, out_ptr, n, HAS: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.exp(tl.load(x_ptr + offsets, mask=mask)), mask=mask)


class ModelNew(nn.Module):
    def forward(self, x, bias=None):
        out = torch.empty_like(x)
        has = bias is not None
        kernel3[(1,)](x, bias if has else x, out, x.numel(), HAS=has, BLOCK=256)
        return out
