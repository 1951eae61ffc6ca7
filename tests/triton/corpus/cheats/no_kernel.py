"""PyTorch only."""

import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.softmax(x, -1)
