"""The kernel stands in a file beside it."""

import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl
from _sibling import sibling_kernel


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        sibling_kernel[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)
        return out
