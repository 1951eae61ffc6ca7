"""Row-wise softmax."""

import json
import os

import torch
import torch.nn as nn


class Model(nn.Module):
    """softmax(x) over the last axis."""

    def forward(self, x):
        return torch.softmax(x, dim=-1)


def get_input_groups():
    """One group per line of shapes.json."""
    with open(os.path.join(os.path.dirname(__file__), "shapes.json"), encoding="utf-8") as lines:
        cases = [json.loads(line) for line in lines if line.strip()]
    return [[torch.randn(case["x"], dtype=getattr(torch, case["dtype"]))] for case in cases]


def get_init_inputs():
    return []
