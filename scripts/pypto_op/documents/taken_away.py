"""Finds the inputs that a golden subtracts; large values of them make the difference lie far below zero."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from pypto_op.documents.golden_scan import called, functions_of, origins_of
from pypto_op.documents.reductions import LARGEST, REDUCES

_NEGATES = frozenset({"neg", "neg_", "negative", "negative_", "softmin"})
_SUBTRACTS = frozenset({"sub", "sub_", "subtract", "subtract_"})
_OF_MANY = LARGEST | frozenset(REDUCES)
"""What is taken away of a row's maximum or mean is not the row."""
_PLAIN = frozenset({"shape", "ndim", "dtype", "device"})


def taken_away(path: Path, function: str) -> frozenset[str]:
    """Return the parameters of a golden that it negates or subtracts, such as the cost in `(g - cost) / eps`.

    Helpers are not followed.

    Raises:
        ContractError: the file cannot be read, does not parse, or lacks the function.
    """
    golden = functions_of(path, function)[function]
    origins = origins_of(golden, _own_names)
    away = {name for node in ast.walk(golden) for part in _negated(node) for name in _own_names(part)}
    return frozenset(origin for name in away for origin in origins.get(name, ()))


def _negated(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what a node turns the sign of."""
    if isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Sub):
        yield node.right if isinstance(node, ast.BinOp) else node.value
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield node.operand
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        yield from (other for one, other in ((node.left, node.right), (node.right, node.left)) if _is_negative(one))
    elif isinstance(node, ast.Call) and called(node) in _NEGATES:
        yield node
    elif isinstance(node, ast.Call) and called(node) in _SUBTRACTS and node.args:
        yield node.args[-1]


def _is_negative(node: ast.AST) -> bool:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant)


def _own_names(node: ast.AST) -> Iterator[str]:
    """Yield the names in an expression, without those that a reduction makes one value of, or that only give a dtype."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and called(node) in _OF_MANY:
        return
    if isinstance(node, ast.Attribute) and node.attr in _PLAIN:
        return
    if isinstance(node, ast.Name):
        yield node.id
    for part in ast.iter_child_nodes(node):
        yield from _own_names(part)
