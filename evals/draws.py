"""Inputs of an evaluation's hidden cases, drawn as the request's data says. The grader fills in the first line below."""

import ast
import operator
import os

import torch

_INPUTS = []  # filled by the grader

PRIMARY_INPUT_ORDER = [entry["name"] for entry in _INPUTS]
DEVICE = torch.device(f"npu:{int(os.environ.get('TILE_FWK_DEVICE_ID', '0'))}")
_OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv}


def _size(text, symbols):
    """Return a size: a number, a symbol, or + - * // of those."""
    if isinstance(text, int):
        return text

    def value(node):
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            return int(symbols[node.id])
        return _OPERATORS[type(node.op)](value(node.left), value(node.right))

    return value(ast.parse(str(text), mode="eval").body)


def _integers(shape, draw, symbols):
    """Return integers: from `low` on and below `high`; `rising` along the last axis where asked."""
    low, high = _size(draw.get("low", 0), symbols), _size(draw["high"], symbols)
    return torch.randint(low, max(high, low + 1), shape, device=DEVICE)


def _floats(shape, draw):
    """Return float32 values: noise, times `scale`, plus `offset`, changed as `form` says."""
    form = draw.get("form", "normal")
    noise = torch.rand(shape, device=DEVICE) if form == "uniform" else torch.randn(shape, device=DEVICE)
    values = noise * float(draw.get("scale", 1.0)) + float(draw.get("offset", 0.0))
    if form == "last_spike":
        values[..., -1] = float(draw.get("peak", 80.0))
    elif form == "rows":
        rows = torch.arange(shape[0], device=DEVICE, dtype=torch.float32).reshape(-1, *[1] * (len(shape) - 1))
        values = values * torch.exp2(rows % 9.0 - 4.0)
    elif form == "steps":
        values = torch.round(values)
    elif form == "minus_inf":
        values[..., 0] = float("-inf")
    elif form == "nan":
        values[..., -1] = float("nan")
    elif form == "zeros":
        values = values * 0.0
    return values


def make_inputs(case):
    """Return the inputs of a case by name: tensors on DEVICE, and scalars as Python numbers."""
    torch.manual_seed(case.get("seed", 42))
    words, symbols, made = case["dtype"], case["shape"], {}
    for entry in _INPUTS:
        draw = {**entry.get("draw", {}), **case.get("draws", {}).get(entry["name"], {})}
        if not entry["shape"] and "value" in entry:
            made[entry["name"]] = case.get("scalars", {}).get(entry["name"], entry["value"])
            continue
        shape = tuple(_size(text, symbols) for text in entry["shape"])
        word = entry["dtype"] if entry["dtype"] != "case" else (words["default"] if isinstance(words, dict) else words)
        values = _integers(shape, draw, symbols) if word.startswith("int") else _floats(shape, draw)
        made[entry["name"]] = values.to(getattr(torch, word))
    return made
