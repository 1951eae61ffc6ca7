"""Inputs of softmax for every case of adversarial_suite.json.

Plain torch. Every tensor is created on DEVICE; a case is reproducible from its seed.
"""

import ast
import operator
import os

import torch

PRIMARY_INPUT_ORDER = ["x"]

DEVICE = torch.device(f"npu:{int(os.environ.get('TILE_FWK_DEVICE_ID', '0'))}")

_SHAPES = {"x": ["R", "C"]}
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
        return noise * 4.0
    if name == "tiny":  # every probability is 1 / C up to rounding
        return noise * 1e-4
    if name == "huge":  # exp overflows without the maximum
        return (noise * 1e4).clamp(-6e4, 6e4) if dtype is torch.float16 else noise * 1e30
    if name == "alternating":
        sign = 1.0 - 2.0 * (torch.arange(shape[-1], dtype=torch.float32, device=DEVICE) % 2.0)
        return sign * (1.0 + noise.abs())
    if name == "last_spike":  # the maximum, and nearly all of the sum, is the last column
        noise[..., -1] = 12.0
        return noise
    if name == "shift":
        return 100.0 + 0.1 * noise.clamp(-1.0, 1.0)
    if name == "all_negative":  # a maximum that starts at 0 leaves exp(-120) = 0 everywhere
        return -120.0 - noise.abs()
    if name == "rising":  # every tile raises the maximum: the old sum must be rescaled each time
        return noise + 0.05 * torch.arange(shape[-1], dtype=torch.float32, device=DEVICE)
    if name == "falling":
        return noise - 0.05 * torch.arange(shape[-1], dtype=torch.float32, device=DEVICE)
    if name == "row_shifted":  # each row has an offset of its own, so a neighbour's maximum shows
        rows = torch.arange(shape[0], dtype=torch.float32, device=DEVICE).unsqueeze(-1)
        return noise + 40.0 * (rows % 5.0 - 2.0)
    if name == "one_nan":  # poisons its own row and no other
        noise[shape[0] // 2, shape[-1] - 1] = float("nan")
        return noise
    if name == "masked_head":  # the first tile of every row holds nothing but -inf
        noise[..., : shape[-1] - 3] = float("-inf")
        return noise
    if name == "masked_row":  # nothing to normalise in one row: NaN there, and only there
        noise[0] = float("-inf")
        return noise
    if name == "dust":  # one term of 1 and many of 0.00013, which a 16-bit sum rounds all one way
        noise = noise * 1e-3 - 8.92
        noise[..., 0] = 0.0
        return noise
    raise ValueError(f"unknown zone {name!r}")


def _cancellation_stress(shape, relative_gap):
    """Return values whose distance to the row maximum is at most `relative_gap` of it, in float32.

    x - max(x) then keeps only the last bits of both, so any extra rounding of x or of the maximum shows.
    """
    fraction = torch.rand(shape, dtype=torch.float32, device=DEVICE)
    return 1e5 * (1.0 - relative_gap * fraction)


def make_inputs(case):
    """Return {"x": [R, C]} for one suite case.

    Knobs: draw_zone (see _zone), seed (default 42),
    cancellation_stress {"target", "expression", "relative_gap", "seed"}.
    """
    dtype = _dtype_from_str(case["dtype"])
    shape = _resolve_shape(_SHAPES["x"], case["shape"])
    stress = case.get("cancellation_stress")
    if stress:
        torch.manual_seed(case.get("seed", stress.get("seed", 42)))
        return {"x": _cancellation_stress(shape, float(stress["relative_gap"])).to(dtype)}
    torch.manual_seed(case.get("seed", 42))
    return {"x": _zone(case.get("draw_zone", "normal"), shape, dtype).to(dtype)}
