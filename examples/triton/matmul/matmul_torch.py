"""Matrix product."""

import json
import os

import torch
import torch.nn as nn


class Model(nn.Module):
    """a @ b for a [m, k] and b [k, n]."""

    def forward(self, a, b):
        return torch.matmul(a, b)


def get_input_groups():
    """One group per line of shapes.json; b is scaled like a layer's weights, so the output has unit variance."""
    with open(os.path.join(os.path.dirname(__file__), "shapes.json"), encoding="utf-8") as lines:
        cases = [json.loads(line) for line in lines if line.strip()]
    groups = []
    for case in cases:
        m, n, k = case["mnk"]
        dtype = getattr(torch, case["dtype"])
        groups.append([torch.randn(m, k).to(dtype), (torch.randn(k, n) / k**0.5).to(dtype)])
    return groups


def get_init_inputs():
    return []
