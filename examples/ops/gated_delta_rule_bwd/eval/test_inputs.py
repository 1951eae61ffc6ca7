"""Inputs of gated_delta_rule_bwd for every case of adversarial_suite.json.

Plain torch. Every tensor is created on DEVICE; a case is reproducible from its seed.
"""

import ast
import operator
import os

import torch

PRIMARY_INPUT_ORDER = ["q", "k", "v", "g", "beta", "dout"]

DEVICE = torch.device(f"npu:{int(os.environ.get('TILE_FWK_DEVICE_ID', '0'))}")

_SHAPES = {"q": ["BH", "T", "K"], "v": ["BH", "T", "V"], "g": ["BH", "T"]}
"""Shape expressions as in module_interfaces.yaml; k is shaped as q, dout as v, beta as g."""

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


def _zone(name, shapes):
    """Return float32 (q, k, v, g, beta, dout) of one zone."""
    q, k, v, dout = _noise(shapes["q"]), _noise(shapes["q"]), _noise(shapes["v"]), _noise(shapes["v"])
    gates = shapes["g"]
    g = -0.3 * torch.rand(gates, dtype=torch.float32, device=DEVICE)
    beta = torch.rand(gates, dtype=torch.float32, device=DEVICE)
    k = torch.nn.functional.normalize(k, dim=-1)
    token = torch.arange(gates[1], dtype=torch.float32, device=DEVICE).reshape(1, -1, 1)
    if name == "normal":
        return q, k, v, g, beta, dout
    if name == "tiny":
        return q, k, v * 1e-3, g, beta, dout
    if name == "no_decay":  # nothing is forgotten: the first chunk is felt in the last
        return q, k, v, g * 0.0, beta * 0.5, dout
    if name == "strong_decay":  # exp(-g) of a chunk overflows float32: only differences of g may be used
        return q, k, v, g * 10.0 - 0.2, beta, dout
    if name == "same_keys":  # keys alike, beta 1: powers of the mix outgrow float32, its inverse does not
        return q, k[:, :1].expand_as(k), v, g * 0.1, beta * 0.0 + 1.0, dout * 0.1
    if name == "beta_zero":  # nothing is written; only dbeta is not zero
        return q, k, v, g, beta * 0.0, dout
    if name == "alternating":
        return q, k, v, g, beta, dout * (1.0 - 2.0 * (token % 2.0))
    if name == "last_spike":  # only the last token has a gradient: all others get theirs by the carried state
        return q, k, v, g * 0.1, beta, dout * (token == gates[1] - 1) * 3.0
    if name == "first_token":  # only the first token has a gradient: all later ones get none
        return q, k, v, g, beta, dout * (token == 0)
    if name == "shift":  # v and dout far from 0: errors and sums of dout do not average out
        return q, k, v * 0.1 + 3.0, g, beta, dout * 0.1 + 0.5
    if name == "all_negative":
        return -q.abs(), k, -v.abs(), g, beta, -dout.abs()
    if name == "one_nan":  # in the last token: poisons what it reaches, and no other head
        dout[0, -1, -1] = float("nan")
        dout[1:, -1, 0] = v[1:, 0, 0] = float("nan")  # in the next head in the first v, too: there dq tells who loses a NaN
        return q, k, v, g, beta, dout
    raise ValueError(f"unknown zone {name!r}")


def _cancellation_stress(shapes, relative_gap):
    """Return (q, k, v, g, beta, dout) for which v and what is read at its key agree but for `relative_gap`."""
    q, _, _, g, beta, dout = _zone("normal", shapes)
    k = torch.nn.functional.normalize(_noise(shapes["q"])[:, :1], dim=-1).expand(shapes["q"])
    v = _noise(shapes["v"])[:, :1] + relative_gap * _noise(shapes["v"])
    return q, k, v, g * 0.0, beta * 0.0 + 1.0, dout * 0.1


def _cancellation_stress_of_gradients(shapes, relative_gap):
    """Return (q, k, v, g, beta, dout) for which both subtractions of the reverse scan cancel but for `relative_gap`.

    One key of length 1 throughout, beta 1: what a token writes takes all of dstate along the key, and q is nearly that key.
    A decay of one half keeps what is read at half of v, so the token's own share of dk is that of the state before it.
    """
    k = torch.nn.functional.normalize(_noise(shapes["q"])[:, :1], dim=-1).expand(shapes["q"])
    q = k + relative_gap * _noise(shapes["q"])
    v = _noise(shapes["v"])[:, :1] + relative_gap * _noise(shapes["v"])
    _, _, _, g, beta, dout = _zone("normal", shapes)
    return q, k, v, g * 0.0 - 0.6931471805599453, beta * 0.0 + 1.0, dout * 0.1


def make_inputs(case):
    """Return {"q", "k": [BH, T, K], "v", "dout": [BH, T, V], "g", "beta": [BH, T]} for one suite case.

    g and beta are float32 whatever the case's dtype. Knobs: draw_zone (see _zone), seed (default 42),
    cancellation_stress {"target", "expression", "relative_gap", "seed"}.
    """
    dtype = _dtype_from_str(case["dtype"])
    shapes = {name: _resolve_shape(expressions, case["shape"]) for name, expressions in _SHAPES.items()}
    stress = case.get("cancellation_stress")
    torch.manual_seed(case.get("seed", stress.get("seed", 42) if stress else 42))
    if stress:
        stressed = _cancellation_stress_of_gradients if stress["target"] == "dk" else _cancellation_stress
        q, k, v, g, beta, dout = stressed(shapes, float(stress["relative_gap"]))
    else:
        q, k, v, g, beta, dout = _zone(case.get("draw_zone", "normal"), shapes)
    made = {"q": q, "k": k, "v": v, "dout": dout}
    made = {name: tensor.to(dtype).contiguous() for name, tensor in made.items()}
    return {"q": made["q"], "k": made["k"], "v": made["v"], "g": g, "beta": beta, "dout": made["dout"]}
