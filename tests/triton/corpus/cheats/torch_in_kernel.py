"""What looks like a kernel calls PyTorch, which only the interpreter executes."""

import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl


BOX = [torch.ones(8, 8)]


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    y = torch.softmax(BOX[-1], -1)
    tl.store(out_ptr + tl.arange(0, BLOCK), y)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.zeros_like(x)
        kernel[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)
        return out
