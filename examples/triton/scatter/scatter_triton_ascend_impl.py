"""Integer scatter-add with atomics: the order of integer additions does not matter."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scatter_kernel(index_ptr, values_ptr, out_ptr, n, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = place < n
    index = tl.load(index_ptr + place, mask=mask, other=0)
    values = tl.load(values_ptr + place, mask=mask, other=0)
    tl.atomic_add(out_ptr + index, values, mask=mask)


class ModelNew(nn.Module):
    def __init__(self, bins):
        super().__init__()
        self.bins = bins

    def forward(self, index, values):
        out = torch.zeros(self.bins, dtype=torch.int32, device=values.device)
        n = values.numel()
        scatter_kernel[(triton.cdiv(n, 1024),)](index, values, out, n, BLOCK=1024)
        return out
