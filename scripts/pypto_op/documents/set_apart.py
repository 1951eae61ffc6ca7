"""Finds whole numbers with a meaning of their own in a golden, such as a label that is ignored or the index of padding.

SPEC.md's range of a label (`0 <= target < V`) leaves such a number out, and a kernel that never looks for it would pass. The
golden's source tells it: there the input is compared with a scalar input, or with a number. The source is read, not run.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from pypto_op.documents.reading import read_text
from pypto_op.python_text import functions_in, parse

_EQUAL = {"eq", "ne"}
_NEGATIVE = -1
"""What stands for the negative numbers where a golden asks whether an index is below 0."""

Apart = Mapping[str, tuple[str | int, ...]]
"""Integer tensor -> what it is compared with: the name of a scalar input, or a number; each once, in order."""


def set_apart(path: Path, function: str, tensors: Collection[str], scalars: Collection[str]) -> Apart:
    """Return what a golden function compares its integer inputs with.

    Args:
        function: in it.
        tensors: the integer tensors among its parameters.
        scalars: the whole numbers among them.

    Raises:
        ContractError: the file cannot be read.
    """
    tree = parse(read_text(path), path)
    node = functions_in(tree).get(function)
    found: dict[str, dict[str | int, None]] = {}
    if node is not None and tensors:
        origin = _origins(node, set(tensors))
        for one, other, equal in _comparisons(node):
            for tensor, number in ((origin.get(_root(one)), other), (origin.get(_root(other)), one)):
                value = _number(number, scalars)
                if tensor is None or value is None:
                    continue
                if equal:
                    found.setdefault(tensor, {})[value] = None
                elif value == 0:
                    found.setdefault(tensor, {})[_NEGATIVE] = None
    return {tensor: tuple(values) for tensor, values in found.items()}


def _origins(node: ast.AST, tensors: set[str]) -> dict[str, str]:
    """Return each name that holds an input, whatever its dtype and shape, and that input's name."""
    origin = {name: name for name in tensors}
    for statement in ast.walk(node):
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if _root(value) in origin:
                origin.setdefault(name, origin[_root(value)])
    return origin


def _root(node: ast.expr) -> str:
    """Return the name that an expression is a view or a cast of (`target.to(torch.int64)[:, None]`), "" for another."""
    while True:
        match node:
            case ast.Name(id=name):
                return name
            case ast.Call(func=ast.Attribute(value=inner, attr=attr)) if attr not in _EQUAL:
                node = inner
            case ast.Subscript(value=inner):
                node = inner
            case _:
                return ""


def _comparisons(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr, bool]]:
    """Yield both sides of each comparison, and whether it asks for equality; else it asks for the sign of the left side."""
    for found in ast.walk(node):
        match found:
            case ast.Compare(left=one, ops=[ast.Eq() | ast.NotEq()], comparators=[other]):
                yield one, other, True
            case ast.Compare(left=one, ops=[ast.Lt() | ast.GtE()], comparators=[other]):
                yield one, other, False
            case ast.Call(func=ast.Attribute(value=ast.Name(id="torch"), attr=attr), args=[one, other]) if attr in _EQUAL:
                yield one, other, True
            case ast.Call(func=ast.Attribute(value=one, attr=attr), args=[other]) if attr in _EQUAL:
                yield one, other, True


def _number(node: ast.expr, scalars: Collection[str]) -> str | int | None:
    match node:
        case ast.Name(id=name) if name in scalars:
            return name
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(value))):
            return -value
    return None
