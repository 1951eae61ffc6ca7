"""Inputs of flash_attention_bwd for every case of adversarial_suite.json.

Plain torch. Every tensor is created on DEVICE; a case is reproducible from its seed.
"""

import ast
import operator
import os

import torch

PRIMARY_INPUT_ORDER = ["q", "k", "v", "out", "lse", "dout", "causal"]

DEVICE = torch.device(f"npu:{int(os.environ.get('TILE_FWK_DEVICE_ID', '0'))}")

_SHAPES = {"q": ["BH", "S", "D"], "lse": ["BH", "S"]}
"""Shape expressions as in module_interfaces.yaml; k, v, out and dout have the shape of q."""

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


def _noise(shape):
    """Return standard normal float32 values."""
    return torch.randn(shape, dtype=torch.float32, device=DEVICE)


def _zone(name, shape):
    """Return float32 (q, k, v, dout) of one zone; the scores they make are q k^T / sqrt(D)."""
    q, k, v, dout = _noise(shape), _noise(shape), _noise(shape), _noise(shape)
    length, head_dim = shape[1], shape[2]
    position = torch.arange(length, dtype=torch.float32, device=DEVICE).reshape(1, length, 1)
    root = head_dim**0.5
    if name == "normal":
        return q, k, v, dout
    if name == "tiny":  # scores near 0: every weight is one over the number of keys
        return q * 1e-3, k * 1e-3, v, dout
    if name == "large_scores":  # few keys take nearly all the weight of a query
        return q * 1.6, k * 1.6, v, dout
    if name == "sharp":  # scores up to 40: an extra rounding of scores or row dot shows in 16 bits
        return q * 3.0, k * 3.0, v, dout
    if name == "alternating":
        return q, k, v, dout * (1.0 - 2.0 * (position % 2.0))
    if name == "last_spike":  # the last key takes most of the weight of every query that sees it
        k = k * 0.1
        k[:, -1] = 3.0
        return q * 0.1 + 1.0, k, v, dout * 0.3
    if name == "last_query":  # only the last query has a gradient
        return q, k, v, dout * (position == length - 1)
    if name == "all_negative":  # scores near -30: exp without lse leaves next to nothing
        return q * 0.05 + 1.0, k * 0.05 - 30.0 / root, v, dout * 0.3
    if name == "shift":  # scores 90 +- 0.1: exp overflows float32 without lse
        return q * 0.0 + 9.5, 9.5 / root + 0.01 * k.clamp(-1.0, 1.0) / root, v, dout * 0.1
    if name == "opposed":  # the parts of dv of the last key overflow float16, their sum does not
        k = k * 0.1
        k[:, -1] = 6.0
        sign = 1.0 - 2.0 * ((position // 128) % 2.0)
        return q * 0.1 + 1.0, k, v * 0.01, dout + 600.0 * sign
    if name == "position_values":  # q, k, v tell their own position
        ramp = position / length
        return q * 0.5 + ramp, k * 0.5 - ramp, v + 2.0 * ramp, dout * (1.0 + ramp)
    if name == "one_nan":  # poisons dq of its query, dk of the head and dv in one column
        dout[0, length // 2, head_dim - 1] = float("nan")
        return q, k, v, dout
    if name == "nan_in_query":  # of the last one, which sees all keys: its out and lse are NaN, and so is all that it reaches
        q[0, -1, head_dim // 2] = float("nan")
        return q, k, v, dout
    raise ValueError(f"unknown zone {name!r}")


def _cancellation_stress(shape, relative_gap):
    """Return (q, k, v, dout) for which dout v^T and the row dot agree but for `relative_gap`.

    All rows of v are one row, but for a share of `relative_gap`; so out is that row too, and the difference
    keeps only the last bits of both. An extra rounding of either shows.
    """
    row = torch.randn((shape[0], 1, shape[2]), dtype=torch.float32, device=DEVICE)
    v = 2.0 * row + relative_gap * _noise(shape)
    return _noise(shape), _noise(shape), v, row + 0.1 * _noise(shape)


def _forward(q, k, v, causal):
    """Return (out, lse) of the forward pass, out in q's dtype and lse in float32."""
    scores = torch.matmul(q.float(), k.float().transpose(1, 2)) / q.shape[2] ** 0.5
    if causal:
        position = torch.arange(q.shape[1], device=q.device)
        scores = scores.masked_fill(position.unsqueeze(0) > position.unsqueeze(1), float("-inf"))
    lse = torch.logsumexp(scores, dim=-1)
    out = torch.matmul(torch.exp(scores - lse.unsqueeze(-1)), v.float())
    return out.to(q.dtype), lse


def make_inputs(case):
    """Return {"q", "k", "v", "out", "dout": [BH, S, D], "lse": [BH, S], "causal": bool} for one suite case.

    Knobs: causal (default False), draw_zone (see _zone), seed (default 42),
    cancellation_stress {"target", "expression", "relative_gap", "seed"}.
    """
    dtype = _dtype_from_str(case["dtype"])
    shape = _resolve_shape(_SHAPES["q"], case["shape"])
    causal = bool(case.get("causal", False))
    stress = case.get("cancellation_stress")
    torch.manual_seed(case.get("seed", stress.get("seed", 42) if stress else 42))
    if stress:
        made = _cancellation_stress(shape, float(stress["relative_gap"]))
    else:
        made = _zone(case.get("draw_zone", "normal"), shape)
    q, k, v, dout = (tensor.to(dtype) for tensor in made)
    out, lse = _forward(q, k, v, causal)
    return {"q": q, "k": k, "v": v, "out": out, "lse": lse, "dout": dout, "causal": causal}
