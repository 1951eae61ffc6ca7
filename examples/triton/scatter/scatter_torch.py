"""Integer scatter-add: sums of values by bin."""

import json
import os

import torch
import torch.nn as nn


class Model(nn.Module):
    """out[index[i]] += values[i], exact in int32."""

    def __init__(self, bins):
        super().__init__()
        self.bins = bins

    def forward(self, index, values):
        out = torch.zeros(self.bins, dtype=torch.int32, device=values.device)
        return out.scatter_add(0, index, values)


def _cases():
    with open(os.path.join(os.path.dirname(__file__), "shapes.json"), encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


def get_input_groups():
    """One group per line of shapes.json; all have the same number of bins."""
    groups = []
    for case in _cases():
        n = case["n"]
        values = torch.randint(-1000, 1000, (n,), dtype=torch.int32)
        groups.append([torch.randint(0, case["bins"], (n,)), values])
    return groups


def get_init_inputs():
    return [_cases()[0]["bins"]]
