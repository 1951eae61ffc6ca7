"""gelu(x * scale + shift) * gate in float32, rounded to float16; scale and shift broadcast over rows, gate over columns."""

import json
import os

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """x [m, n] and gate [m, 1] are float16; scale [n] and shift [n] are float32 weights."""

    def __init__(self, n):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(n))
        self.shift = nn.Parameter(torch.randn(n))

    def forward(self, x, gate):
        return (F.gelu(x.float() * self.scale + self.shift) * gate.float()).to(x.dtype)


def _cases():
    with open(os.path.join(os.path.dirname(__file__), "shapes.json"), encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


def get_input_groups():
    """One group per line of shapes.json; all have the same last axis, since it is the weights'."""
    return [[torch.randn(case["x"]).half(), torch.randn(case["x"][0], 1).half()] for case in _cases()]


def get_init_inputs():
    return [_cases()[0]["x"][1]]
