"""Row-wise softmax."""

import torch
import torch.nn as nn


class Model(nn.Module):
    """softmax(x) over the last axis."""

    def forward(self, x):
        return torch.softmax(x, dim=-1)


def get_input_groups():
    """Small, odd and one-column rows, in two dtypes."""
    shapes = [(4, 128), (3, 257), (1, 1), (7, 1000)]
    return [[torch.randn(shape, dtype=dtype)] for shape in shapes for dtype in (torch.float32, torch.float16)]


def get_init_inputs():
    return []
