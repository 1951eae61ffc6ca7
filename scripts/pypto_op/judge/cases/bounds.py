"""Whole numbers by which a kernel may bound what it treats: `min(tiles, 256)`, a buffer of 4096 rows, `x[:2048]`.

A verdict draws a shape beyond each that it can afford (`fresh`). A number that bounds nothing costs a larger drawn case, so
only these places count: smallest-of calls, comparisons, slices, counts of loops, and shapes of new tensors. A test behind which
the code raises bounds nothing silently, and tile shapes are no bounds.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Iterator
from typing import TypeGuard

from pypto_op.python_text import NoNumber, assignments, evaluate, parsed

_LEAST, _LARGEST = 16, 1 << 20
_OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.LShift: lambda left, right: left * 2 ** min(right, 64),
}
_SMALLEST_OF = frozenset(("min", "minimum", "clip", "clamp", "clamp_max"))
_LOOPS = frozenset(("range", "loop", "loop_unroll"))
_TENSORS = frozenset(("empty", "zeros", "ones", "full", "tensor", "new_empty", "new_zeros", "new_full"))


def bounds_in(text: str) -> tuple[int, ...]:
    """Return the whole numbers from 16 to a million that may bound sizes in a kernel's file, smallest first."""
    tree = parsed(text)
    if tree is None:
        return ()
    names: dict[str, int] = {}
    for name, value in _named(tree):
        if (number := _number(value, names)) is not None:
            names[name] = number
    raising = {id(inner) for node in ast.walk(tree) if _raises(node) for inner in ast.walk(node.test)}
    found = {_number(node, names) for place in ast.walk(tree) if id(place) not in raising for node in _bounding(place)}
    return tuple(sorted(number for number in found if number is not None and _LEAST <= number <= _LARGEST))


def _named(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """Yield names and what is given to them, by assignments and as defaults of parameters."""
    for targets, value in assignments(tree):
        if len(targets) == 1 and isinstance(targets[0], ast.Name):
            yield targets[0].id, value
    for node in ast.walk(tree):
        if isinstance(node, ast.arguments):
            plain, last = [*node.posonlyargs, *node.args], len(node.defaults)
            given = [
                *zip(plain[len(plain) - last :], node.defaults, strict=True),
                *zip(node.kwonlyargs, node.kw_defaults, strict=True),
            ]
            yield from ((argument.arg, value) for argument, value in given if value is not None)


def _bounding(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the expressions of a node that may be bounds."""
    if isinstance(node, ast.Compare):
        yield from (node.left, *node.comparators)
    elif isinstance(node, ast.Slice):
        yield from (end for end in (node.lower, node.upper) if end is not None)
    elif isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        for argument in given if name in _SMALLEST_OF | _LOOPS | _TENSORS else ():
            yield from argument.elts if isinstance(argument, (ast.List, ast.Tuple)) else [argument]


def _raises(node: ast.AST) -> TypeGuard[ast.Assert | ast.If]:
    return isinstance(node, ast.Assert) or (isinstance(node, ast.If) and isinstance(node.body[-1], ast.Raise))


def _number(node: ast.expr, names: dict[str, int]) -> int | None:
    """Return what whole numbers and constants come to; a float that is whole counts as one."""
    if isinstance(node, ast.Attribute):
        return names.get(node.attr)
    try:
        value = evaluate(node, names, _OPERATORS, (int, float))
    except (NoNumber, ValueError, OverflowError):
        return None
    return int(value) if abs(value) <= _LARGEST and value == int(value) else None
