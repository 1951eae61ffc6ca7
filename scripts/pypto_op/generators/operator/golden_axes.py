"""Axes of inputs that a golden reduces over, where its source says so with a literal: `x.float().sum(dim=-1)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pypto_op.documents.golden_scan import called
from pypto_op.documents.reductions import ALONG_AN_AXIS
from pypto_op.python_text import Function, parameters

_SAME_AXES = frozenset({"to", "float", "double", "half", "bfloat16", "contiguous", "clone", "detach", "exp", "abs", "square"})


def reduced_inputs(function: Function) -> Iterator[tuple[str, int]]:
    """Yield input and place of the axis of each reduction; views and names that are assigned twice are not followed."""
    inputs = {name: name for name in parameters(function)}
    assigned: dict[str, list[ast.expr]] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            assigned.setdefault(node.targets[0].id, []).append(node.value)
    for name, values in assigned.items():
        origins = {_input_of(value, inputs) for value in values}
        inputs[name] = origins.pop() if len(origins) == 1 else ""
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and called(node) in ALONG_AN_AXIS:
            base, rest = _operands(node)
            name = _input_of(base, inputs) if base is not None else ""
            place = _place(node, rest)
            if name and place is not None:
                yield name, place


def _operands(call: ast.Call) -> tuple[ast.expr | None, list[ast.expr]]:
    """Return what is reduced and the other arguments, of `x.sum(0)` and of `torch.sum(x, 0)`."""
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    if owner is None or (isinstance(owner, ast.Name) and owner.id in ("torch", "F")):
        return (call.args[0], call.args[1:]) if call.args else (None, [])
    return owner, list(call.args)


def _place(call: ast.Call, rest: list[ast.expr]) -> int | None:
    given = [keyword.value for keyword in call.keywords if keyword.arg in ("dim", "axis")] or rest[:1]
    try:
        value = ast.literal_eval(given[0]) if given else None
    except ValueError:
        return None
    return value if type(value) is int else None


def _input_of(node: ast.expr, inputs: dict[str, str]) -> str:
    """Return the input that an expression has the axes of, "" where that is not plain."""
    if isinstance(node, ast.Name):
        return inputs.get(node.id, "")
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and called(node) in _SAME_AXES:
        owner = node.func.value
        if isinstance(owner, ast.Name) and owner.id == "torch":
            return _input_of(node.args[0], inputs) if node.args else ""
        return _input_of(owner, inputs)
    return ""
