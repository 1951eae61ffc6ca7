"""import triton.language as lang."""

import torch
import torch.nn as nn
import triton
import triton.language as lang


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: lang.constexpr):
    offsets = lang.program_id(0) * BLOCK + lang.arange(0, BLOCK)
    mask = offsets < n
    lang.store(out_ptr + offsets, lang.exp(lang.load(x_ptr + offsets, mask=mask)), mask=mask)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)
        return out
