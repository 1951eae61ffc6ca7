"""SPEC.md's `shape_constraints` as far as they are arithmetic: `D == 32`, `S % BT == 0`, `H <= 8 * 128`. Never `eval`.

They may also be about whole numbers that are inputs: a scalar (`1 <= groups`), or every value of a tensor (`0 <= labels < C`).
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

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


def mentioned(constraints: Iterable[str], name: str) -> bool:
    """Whether a constraint that is a comparison names `name`."""
    return any(name in _names(side) for comparison in comparisons(constraints) for side in comparison[::2])


def limits(constraints: Iterable[str], name: str, symbols: Collection[str]) -> tuple[str, str]:
    """Return the least value of `name` and the first one that is too large, as expressions of `symbols`; "" for none said."""
    low = high = ""
    for left, op, right in comparisons(constraints):
        if _is(left, name) and _names(right) <= set(symbols):
            bound = ast.unparse(right)
            low = {ast.GtE: bound, ast.Gt: f"{bound} + 1"}.get(type(op), low)
            high = {ast.Lt: bound, ast.LtE: f"{bound} + 1"}.get(type(op), high)
        elif _is(right, name) and _names(left) <= set(symbols):
            bound = ast.unparse(left)
            low = {ast.LtE: bound, ast.Lt: f"{bound} + 1"}.get(type(op), low)
            high = {ast.Gt: bound, ast.GtE: f"{bound} + 1"}.get(type(op), high)
    return low, high


def comparisons(constraints: Iterable[str]) -> Iterator[tuple[ast.expr, ast.cmpop, ast.expr]]:
    """Yield left, operator and right of each comparison, of a chain one by one; `and` joins them."""
    for text in constraints:
        try:
            tree = ast.parse(text.strip()[:400], mode="eval").body
        except _UNREADABLE:
            continue
        parts = tree.values if isinstance(tree, ast.BoolOp) and isinstance(tree.op, ast.And) else [tree]
        for part in parts:
            if isinstance(part, ast.Compare):
                yield from zip((part.left, *part.comparators), part.ops, part.comparators, strict=False)


def _names(node: ast.expr) -> set[str]:
    return {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}


def _is(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


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
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_number(node.operand, sizes)
    if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
        left, right = _number(node.left, sizes), _number(node.right, sizes)
        if isinstance(node.op, (ast.FloorDiv, ast.Mod)) and right == 0:
            raise _Prose
        return _ARITHMETIC[type(node.op)](left, right)
    raise _Prose
