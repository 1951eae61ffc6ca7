"""Inputs of demo: the same file for suite and tests."""
import os

import torch

PRIMARY_INPUT_ORDER = ("x", "w")
DEVICE = torch.device(f"npu:{int(os.environ.get('TILE_FWK_DEVICE_ID', '0'))}")


def _dtype_from_str(word):
    return {"float32": torch.float32, "float16": torch.float16}[word]


def _resolve_shape(shape):
    return (int(shape["T"]), 64)


def make_inputs(case):
    """Two tensors: x [T, 64], w [1, 64]."""
    word = case["dtype"] if isinstance(case["dtype"], str) else case["dtype"]["default"]
    generator = torch.Generator(device=DEVICE).manual_seed(int(case.get("seed", 42)))
    x = torch.randn(_resolve_shape(case["shape"]), generator=generator, dtype=torch.float32, device=DEVICE)
    w = torch.ones((1, 64), dtype=torch.float32, device=DEVICE)
    return {"x": x.to(_dtype_from_str(word)), "w": w}
