"""SPEC.md's `shape_constraints` as far as they are arithmetic: `D == 32`, `S % BT == 0`, `H <= 8 * 128`. Never `eval`."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Mapping

_ARITHMETIC: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARISONS: dict[type[ast.cmpop], Callable[[int, int], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


class _Prose(Exception):
    """A constraint is a sentence for people, or speaks of something else than sizes."""


_UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError, _Prose)


def satisfied(constraints: Iterable[str], sizes: Mapping[str, int]) -> bool:
    """Whether `sizes` satisfy every constraint that can be read; sentences for people count as satisfied."""
    return all(_holds(text, sizes) for text in constraints)


def divide(constraints: Iterable[str], axis: str, sizes: Mapping[str, int]) -> bool:
    """Whether a constraint that can be read is about what divides `axis`: then other sizes than those in `sizes` are meant."""
    for text in constraints:
        try:
            tree = ast.parse(text.strip()[:400], mode="eval").body
            _truth(tree, sizes)
        except _UNREADABLE:
            continue
        rests = [node.left for node in ast.walk(tree) if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod)]
        if any(isinstance(node, ast.Name) and node.id == axis for node in rests):
            return True
    return False


def _holds(text: str, sizes: Mapping[str, int]) -> bool:
    try:
        tree = ast.parse(text.strip()[:400], mode="eval").body
        return _truth(tree, sizes)
    except _UNREADABLE:
        return True


def _truth(node: ast.expr, sizes: Mapping[str, int]) -> bool:
    if isinstance(node, ast.BoolOp):
        parts = [_truth(value, sizes) for value in node.values]
        return all(parts) if isinstance(node.op, ast.And) else any(parts)
    if isinstance(node, ast.Compare):
        values = [_number(item, sizes) for item in (node.left, *node.comparators)]
        pairs = zip(values, node.ops, values[1:], strict=False)
        return all(_comparison(op)(left, right) for left, op, right in pairs)
    raise _Prose


def _comparison(op: ast.cmpop) -> Callable[[int, int], bool]:
    if type(op) not in _COMPARISONS:
        raise _Prose
    return _COMPARISONS[type(op)]


def _number(node: ast.expr, sizes: Mapping[str, int]) -> int:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.Name) and node.id in sizes:
        return sizes[node.id]
    if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
        left, right = _number(node.left, sizes), _number(node.right, sizes)
        if isinstance(node.op, (ast.FloorDiv, ast.Mod)) and right == 0:
            raise _Prose
        return _ARITHMETIC[type(node.op)](left, right)
    raise _Prose
