"""A task, for the cheat that imports it."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, -1)


def get_inputs():
    return [torch.randn(8, 8)]


def get_init_inputs():
    return []
