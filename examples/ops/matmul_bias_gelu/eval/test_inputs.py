"""Inputs of matmul_bias_gelu for every case of adversarial_suite.json.

Plain torch. Every tensor is created on DEVICE; a case is reproducible from its seed.
"""

import ast
import operator
import os

import torch

PRIMARY_INPUT_ORDER = ["x", "w", "bias"]

DEVICE = torch.device(f"npu:{int(os.environ.get('TILE_FWK_DEVICE_ID', '0'))}")

_SHAPES = {"x": ["M", "K"], "w": ["K", "N"], "bias": ["N"]}
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


def _zone(name, shapes):
    """Return float32 (x, w, bias) of one zone; z = x w + bias is what GELU sees."""
    rows, inner = shapes["x"]
    x = torch.randn(shapes["x"], dtype=torch.float32, device=DEVICE)
    w = torch.randn(shapes["w"], dtype=torch.float32, device=DEVICE) / inner**0.5
    bias = torch.randn(shapes["bias"], dtype=torch.float32, device=DEVICE)
    column = torch.arange(shapes["bias"][0], dtype=torch.float32, device=DEVICE)
    if name == "normal":
        return x, w, bias
    if name == "tiny":  # gelu(z) is about z / 2
        return x * 1e-3, w, bias * 1e-3
    if name == "saturated":  # z up to about 100: exp(-2u) overflows float32 for z < -12 and must not give NaN
        return x, w, bias * 30.0
    if name == "alternating":  # the terms of each sum alternate in sign and grow with x, but their sum does not
        sign = 1.0 - 2.0 * (torch.arange(inner, dtype=torch.float32, device=DEVICE) % 2.0)
        return x * 0.1 + 24.0 * sign, w * 0.1 + 1.0, bias
    if name == "last_spike":  # the last term decides each sum
        x[:, -1] = 3.0
        w[-1] = 1.0 - column / column.numel()
        return x, w, bias
    if name == "shift":  # z = 8 +- 0.1: gelu(z) = z
        return x * 0.1, w, bias * 0.0 + 8.0
    if name == "all_negative":  # z in [-6, -1]: the tail of GELU, where 1 + tanh(u) has lost its digits
        return x * 0.05, w, bias * 0.0 - 1.0 - 5.0 * column / column.numel()
    if name == "bias_alone":  # x = 0: each column shows its own bias
        return x * 0.0, w, column / 64.0 - 2.0
    if name == "one_hot":  # row i of x picks row i % K of w: every element of w is seen by itself
        hot = torch.arange(rows, device=DEVICE) % inner
        x = torch.nn.functional.one_hot(hot, inner).to(torch.float32)
        return x, w * inner**0.5, bias * 0.0
    if name == "one_nan":  # one in each input: they poison one row and two columns, and nothing else
        x[rows // 2, inner - 1] = w[inner // 2, 3] = bias[-1] = float("nan")
        return x, w, bias
    raise ValueError(f"unknown zone {name!r}")


def make_inputs(case):
    """Return {"x": [M, K], "w": [K, N], "bias": [N]} for one suite case. Knobs: draw_zone (see _zone), seed (default 42)."""
    dtype = _dtype_from_str(case["dtype"])
    torch.manual_seed(case.get("seed", 42))
    shapes = {name: _resolve_shape(expressions, case["shape"]) for name, expressions in _SHAPES.items()}
    x, w, bias = _zone(case.get("draw_zone", "normal"), shapes)
    return {"x": x.to(dtype), "w": w.to(dtype), "bias": bias.to(dtype)}
