"""Inputs of rmsnorm for every case of adversarial_suite.json.

Plain torch. Every tensor is created on DEVICE; a case is reproducible from its seed.
"""

import ast
import operator
import os

import torch

PRIMARY_INPUT_ORDER = ["x", "weight", "eps"]

DEVICE = torch.device(f"npu:{int(os.environ.get('TILE_FWK_DEVICE_ID', '0'))}")

_SHAPES = {"x": ["T", "H"], "weight": ["H"]}
"""Shape expressions of the tensors, as in module_interfaces.yaml."""

_DTYPES = {
    "float32": torch.float32,
    "fp32": torch.float32,
    "float16": torch.float16,
    "fp16": torch.float16,
    "bfloat16": torch.bfloat16,
    "bf16": torch.bfloat16,
}

_OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}


def _dtype_from_str(word):
    """Return the torch dtype for "float16", "fp16", ...; a mapping gives its "default"."""
    if isinstance(word, dict):
        word = word["default"]
    return _DTYPES[word]


def _resolve_shape(expressions, symbols):
    """Return a shape as ints; an expression is an int, a symbol of `symbols`, or + - * // of those."""

    def value(node):
        if isinstance(node, ast.Constant) and type(node.value) is int:
            return node.value
        if isinstance(node, ast.Name):
            return int(symbols[node.id])
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            return _OPERATORS[type(node.op)](value(node.left), value(node.right))
        raise ValueError(f"{ast.dump(node)} is no shape expression")

    return tuple(value(ast.parse(str(expression), mode="eval").body) for expression in expressions)


def _zone(name, shape, dtype):
    """Return float32 values of one zone, all finite in `dtype` unless the zone says otherwise."""
    noise = torch.randn(shape, dtype=torch.float32, device=DEVICE)
    if name == "normal":
        return noise
    if name == "tiny":  # mean square far below eps = 1e-6 for float32, near it for 16 bits
        return noise * (1e-4 if dtype is torch.float32 else 1e-3)
    if name == "huge":  # squares overflow float16, and do not overflow float32
        return (noise * 1e4).clamp(-6e4, 6e4) if dtype is torch.float16 else noise * 1e15
    if name == "alternating":
        sign = 1.0 - 2.0 * (torch.arange(shape[-1], dtype=torch.float32, device=DEVICE) % 2.0)
        return sign * (1.0 + noise.abs())
    if name == "last_spike":  # a dropped last column changes the whole row
        noise = noise * 0.1
        noise[..., -1] = 90.0
        return noise
    if name == "first_spike":
        noise = noise * 0.1
        noise[..., 0] = -90.0
        return noise
    if name == "shift":
        return 100.0 + 0.1 * noise.clamp(-1.0, 1.0)
    if name == "all_negative":
        return -1.0 - noise.abs()
    if name == "row_scaled":  # each row has a scale of its own, so a neighbour's statistics show
        rows = torch.arange(shape[0], dtype=torch.float32, device=DEVICE).unsqueeze(-1)
        return noise * torch.exp2(rows % 11.0 - 5.0)
    if name == "one_nan":  # poisons its own row and no other
        noise[shape[0] // 2, shape[-1] - 1] = float("nan")
        return noise
    if name == "zeros":  # 0 / sqrt(eps) = 0, not NaN
        return noise * 0.0
    raise ValueError(f"unknown zone {name!r}")


def _weight(name, shape):
    """Return float32 weights: "normal", "ones", or "ramp", which rises from column to column."""
    if name == "ones":
        return torch.ones(shape, dtype=torch.float32, device=DEVICE)
    if name == "ramp":
        return torch.linspace(-2.0, 2.0, shape[0], dtype=torch.float32, device=DEVICE)
    return torch.randn(shape, dtype=torch.float32, device=DEVICE)


def make_inputs(case):
    """Return {"x": [T, H], "weight": [H], "eps": float} for one suite case.

    Knobs: draw_zone (see _zone), weight ("normal", "ones", "ramp"), eps (default 1e-6), seed (default 42).
    """
    torch.manual_seed(case.get("seed", 42))
    dtype = _dtype_from_str(case["dtype"])
    x_shape = _resolve_shape(_SHAPES["x"], case["shape"])
    weight_shape = _resolve_shape(_SHAPES["weight"], case["shape"])
    return {
        "x": _zone(case.get("draw_zone", "normal"), x_shape, dtype).to(dtype),
        "weight": _weight(case.get("weight", "normal"), weight_shape).to(dtype),
        "eps": float(case.get("eps", 1e-6)),
    }
