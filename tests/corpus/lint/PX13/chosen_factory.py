"""Inputs of demo."""
import os

import torch

PRIMARY_INPUT_ORDER = ("x", "w")
DEVICE = torch.device(f"npu:{int(os.environ.get('TILE_FWK_DEVICE_ID', '0'))}")


def make_inputs(case):
    """x [T, 64], w [1, 64]."""
    torch.manual_seed(int(case.get("seed", 42)))
    rows = int(case["shape"]["T"])
    draw = torch.rand if case.get("positive") else torch.randn
    x = draw((rows, 64), device=DEVICE)
    w = torch.ones((1, 64), device=DEVICE)
    return {"x": x, "w": w}
