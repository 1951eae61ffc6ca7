"""Inputs of flash_attention_fwd for every case of adversarial_suite.json.

Plain torch. Every tensor is created on DEVICE; a case is reproducible from its seed.
"""

import ast
import operator
import os

import torch

PRIMARY_INPUT_ORDER = ["q", "k", "v", "causal"]

DEVICE = torch.device(f"npu:{int(os.environ.get('TILE_FWK_DEVICE_ID', '0'))}")

_SHAPES = {"q": ["BH", "S", "D"], "k": ["BH", "S", "D"], "v": ["BH", "S", "D"]}
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


def _noise(shape):
    """Return standard normal float32 values."""
    return torch.randn(shape, dtype=torch.float32, device=DEVICE)


def _zone(name, shape):
    """Return float32 (q, k, v) of one zone; the scores they make are q k^T / sqrt(D)."""
    q, k, v = _noise(shape), _noise(shape), _noise(shape)
    length, head_dim = shape[1], shape[2]
    position = torch.arange(length, dtype=torch.float32, device=DEVICE).reshape(1, length, 1)
    root = head_dim**0.5
    if name == "normal":
        return q, k, v
    if name == "tiny":  # scores near 0: the output is the mean of v
        return q * 1e-3, k * 1e-3, v
    if name == "uniform":  # scores exactly 0: lse is the log of the number of keys
        return q * 0.0, k, v
    if name == "large_scores":  # one key takes nearly all the weight
        return q * 5.0, k * 5.0, v
    if name == "exact_huge_scores":  # near 1e5, 32 apart, the same in each order: a maximum in 16 bits leaves exp(96) = inf
        q, k = (torch.randint(-31, 32, shape, device=DEVICE).to(torch.float32) for _ in range(2))
        return q * 8.0, k * 4.0 * root, v
    if name == "far_below":  # exact scores below -1e4, of which a row under the causal flag sees one: a mask of -1e4 lies above
        q, k = (torch.randint(1, 32, shape, device=DEVICE).to(torch.float32) for _ in range(2))
        return q * 8.0, k * -4.0 * root, v
    if name == "alternating":
        return q, k, v * (1.0 - 2.0 * (position % 2.0))
    if name == "last_spike":  # the last key takes most of the weight of every query that sees it
        k = k * 0.1
        k[:, -1] = 3.0
        return q * 0.1 + 1.0, k, v
    if name == "rising":  # the maximum rises with every key: the old state must be rescaled
        return q * 0.1 + 1.0, k * 0.1 + position * (8.0 / (root * length)), v
    if name == "falling":
        return q * 0.1 + 1.0, k * 0.1 - position * (8.0 / (root * length)), v
    if name == "steep_rise":  # each tile lies 110 above the last: a maximum that stays behind makes exp(110) = inf
        return q * 0.1 + 1.0, k * 0.1 + position * (110.0 / (128.0 * root)), v
    if name == "steep_fall":  # each tile lies 100 below the last: a maximum that does not run rescales by exp(100) = inf
        return q * 0.1 + 1.0, k * 0.1 - position * (220.0 / (root * length)), v
    if name == "all_negative":  # scores near -120: a maximum that starts at 0 leaves exp(-120) = 0 everywhere
        return q * 0.05 + 1.0, k * 0.05 - 120.0 / root, v
    if name == "shift":  # scores 100 +- 0.1: exp overflows float32 without the maximum
        return q * 0.0 + 1.0, 100.0 / root + 0.1 * k.clamp(-1.0, 1.0) / root, v
    if name == "large_values":  # an unnormalised float16 accumulator overflows
        return q * 0.1, k * 0.1, 300.0 + v
    if name == "position_values":  # v tells its own position and column
        column = torch.arange(head_dim, dtype=torch.float32, device=DEVICE).reshape(1, 1, head_dim)
        return q, k, position / length + 0.1 * column + 0.0 * v
    if name == "one_nan":  # poisons its own query and no other
        q[:, length // 2, head_dim - 1] = float("nan")
        return q, k, v
    if name == "nan_in_values":  # poisons one column of the first head; a key's, all of the last head
        v[0, length // 3, 1] = k[-1, length - 1, 0] = float("nan")
        return q, k, v
    raise ValueError(f"unknown zone {name!r}")


def _cancellation_stress(shape, relative_gap):
    """Return (q, k, v) whose scores lie within `relative_gap` of their row maximum, which is near 50.

    score - max(score) then keeps only the last bits of both, so any extra rounding of the scores shows.
    """
    root = shape[2] ** 0.5
    fraction = torch.rand((shape[0], shape[1], 1), dtype=torch.float32, device=DEVICE)
    q = torch.ones(shape, dtype=torch.float32, device=DEVICE)
    k = (50.0 / root) * (1.0 - relative_gap * fraction) * q
    return q, k, _noise(shape)


def make_inputs(case):
    """Return {"q", "k", "v": [BH, S, D], "causal": bool} for one suite case.

    Knobs: causal (default False), draw_zone (see _zone), seed (default 42),
    cancellation_stress {"target", "expression", "relative_gap", "seed"}.
    """
    dtype = _dtype_from_str(case["dtype"])
    shape = _resolve_shape(_SHAPES["q"], case["shape"])
    stress = case.get("cancellation_stress")
    torch.manual_seed(case.get("seed", stress.get("seed", 42) if stress else 42))
    if stress:
        q, k, v = _cancellation_stress(shape, float(stress["relative_gap"]))
    else:
        q, k, v = _zone(case.get("draw_zone", "normal"), shape)
    return {"q": q.to(dtype), "k": k.to(dtype), "v": v.to(dtype), "causal": bool(case.get("causal", False))}
