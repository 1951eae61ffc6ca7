"""The kernel of a package that is not installed is tried first; the file has one of its own."""

import torch
import torch.nn as nn
import triton
import triton.language as tl

try:
    from fast_kernels_elsewhere import exp_kernel
except ImportError:

    @triton.jit
    def exp_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
        offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        mask = offsets < n
        tl.store(out_ptr + offsets, tl.exp(tl.load(x_ptr + offsets, mask=mask)), mask=mask)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        exp_kernel[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)
        return out
