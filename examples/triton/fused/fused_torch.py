"""gelu(x * scale + shift) * gate, with scale and shift broadcast over the rows and gate over the columns."""

import json
import os

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """gelu(x * scale + shift) * gate for x [m, n]; scale [n] and shift [n] are weights, gate is [m, 1]."""

    def __init__(self, n):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(n))
        self.shift = nn.Parameter(torch.randn(n))

    def forward(self, x, gate):
        return F.gelu(x * self.scale + self.shift) * gate


def _cases():
    with open(os.path.join(os.path.dirname(__file__), "shapes.json"), encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


def get_input_groups():
    """One group per line of shapes.json; all have the same last axis, since it is the weights'."""
    return [[torch.randn(case["x"]), torch.randn(case["x"][0], 1)] for case in _cases()]


def get_init_inputs():
    return [_cases()[0]["x"][1]]
