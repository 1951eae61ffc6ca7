"""The value of an expression that is made of whole numbers only."""

from __future__ import annotations

import ast
from collections.abc import Callable

_LARGEST = 1 << 62
_OPERATIONS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b if b else _LARGEST,
    ast.Pow: lambda a, b: a**b if 0 <= b < 63 and abs(a) < 1 << 16 else _LARGEST,
    ast.LShift: lambda a, b: a << b if 0 <= b < 63 else _LARGEST,
}


def folded(node: ast.expr) -> int | None:
    """Return the value of `2048`, `8 * 1024`, `1 << 20` and the like; None for anything else."""
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int and abs(node.value) < _LARGEST else None
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        left, right = folded(node.left), folded(node.right)
        if left is None or right is None:
            return None
        value = _OPERATIONS[type(node.op)](left, right)
        return value if abs(value) < _LARGEST else None
    return None
