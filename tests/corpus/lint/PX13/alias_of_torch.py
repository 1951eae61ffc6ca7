"""Inputs of demo."""
import os

import torch

PRIMARY_INPUT_ORDER = ("x", "w")
DEVICE = torch.device(f"npu:{int(os.environ.get('TILE_FWK_DEVICE_ID', '0'))}")

t = torch


def make_inputs(case):
    """x [T, 64], w [1, 64]."""
    torch.manual_seed(int(case.get("seed", 42)))
    rows = int(case["shape"]["T"])
    x = t.zeros((rows, 64))
    w = torch.ones((1, 64), device=DEVICE)
    return {"x": x, "w": w}
