"""Triton's driver is asked."""

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


DEVICE = triton.runtime.driver.active.get_current_device()
NUM = triton.runtime.driver.active.utils.get_device_properties(DEVICE)["multiprocessor_count"]


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        kernel[(NUM,)](x, out, x.numel(), BLOCK=256)
        return out
