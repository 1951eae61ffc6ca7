"""The kernel is reached through the module."""

import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl
import _sibling


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        _sibling.sibling_kernel[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)
        return out
