"""Faults of formulas: a missing term, a wrong sign, function, constant or order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import libcst as cst

from pypto_op.mutation.operators.base import Edit, Operator, expression, grouped, number
from pypto_op.mutation.program import Site, called, is_method
from pypto_op_lint.constants import number_of

_Sign: TypeAlias = type[cst.Add] | type[cst.Subtract] | type[cst.Multiply] | type[cst.Divide]
_OPPOSITE: dict[type[cst.BaseBinaryOp], _Sign] = {
    cst.Add: cst.Subtract,
    cst.Subtract: cst.Add,
    cst.Multiply: cst.Divide,
    cst.Divide: cst.Multiply,
}
_FUNCTIONS = {"add": "sub", "sub": "add", "mul": "div", "div": "mul"}
_SWAPS = {
    "amax": "amin",
    "amin": "amax",
    "maximum": "minimum",
    "minimum": "maximum",
    "exp": "expm1",
    "log": "log1p",
    "sqrt": "rsqrt",
    "rsqrt": "sqrt",
    "sin": "cos",
    "cos": "sin",
    "relu": "abs",
    "floor": "ceil",
    "ceil": "floor",
}
_REDUCTION_SWAPS = {"sum": "amax"}
_UNARY = frozenset({"exp", "log", "sqrt", "rsqrt", "abs", "neg", "reciprocal", "relu", "sigmoid", "tanh", "sin", "cos"})
_ORDERED = (cst.Subtract, cst.Divide)


def _operands(node: cst.CSTNode) -> tuple[cst.BaseExpression, cst.BaseExpression] | None:
    """Return the two operands of `a + b` or `pypto.add(a, b)`."""
    match node:
        case cst.BinaryOperation(operator=(cst.Add() | cst.Subtract() | cst.Multiply() | cst.Divide())):
            return node.left, node.right
        case cst.Call(args=[first, second]) if called(node) in _FUNCTIONS and not is_method(node):
            return first.value, second.value
    return None


def _is_rounding_up(site: Site) -> bool:
    """Whether a sum is the `n + T - 1` of a ceiling division, which `dropped_tail` is about."""
    return any(isinstance(p, cst.BinaryOperation) and isinstance(p.operator, cst.FloorDivide) for p in site.parents[-2:])


def missing_term(site: Site) -> Iterable[Edit]:
    """One side of a sum or product is forgotten."""
    if (pair := _operands(site.node)) and not _is_rounding_up(site):
        for kept in pair:
            if number_of(kept) is None:
                yield site.node, grouped(kept)


def wrong_operation(site: Site) -> Iterable[Edit]:
    """Plus for minus, times for divided by."""
    match site.node:
        case cst.BinaryOperation(operator=old) if type(old) in _OPPOSITE and not _is_rounding_up(site):
            new = _OPPOSITE[type(old)](whitespace_before=_SPACE, whitespace_after=_SPACE)
            yield site.node, site.node.with_changes(operator=new)
        case cst.Attribute(attr=cst.Name(value=name)) if name in _FUNCTIONS and site.function.on_device:
            yield site.node, site.node.with_changes(attr=cst.Name(_FUNCTIONS[name]))


_SPACE = cst.SimpleWhitespace(" ")


def operand_order(site: Site) -> Iterable[Edit]:
    """What is subtracted, or divided by, and from what, are confused."""
    match site.node:
        case cst.BinaryOperation(operator=old, left=left, right=right) if isinstance(old, _ORDERED):
            sign = "-" if isinstance(old, cst.Subtract) else "/"
            swap = expression(f"{{r}} {sign} {{l}}", l=grouped(left), r=grouped(right))
            yield site.node, grouped(swap) if isinstance(site.parent, (cst.BinaryOperation, cst.UnaryOperation)) else swap
        case cst.Call(args=[first, second, *rest]) if called(site.node) in ("sub", "div", "matmul") and not is_method(site.node):
            swapped = [first.with_changes(value=second.value), second.with_changes(value=first.value), *rest]
            yield site.node, site.node.with_changes(args=swapped)


def wrong_function(site: Site) -> Iterable[Edit]:
    """A neighbour of the right function."""
    match site.node:
        case cst.Attribute(attr=cst.Name(value=name)) if site.function.on_device:
            for table in (_SWAPS, _REDUCTION_SWAPS):
                if name in table:
                    yield site.node, site.node.with_changes(attr=cst.Name(table[name]))


def missing_function(site: Site) -> Iterable[Edit]:
    """A function is not applied."""
    match site.node:
        case cst.Call(args=[only]) if called(site.node) in _UNARY:
            yield site.node, only.value
        case cst.Call(func=cst.Attribute(value=receiver), args=[]) if called(site.node) in _UNARY:
            yield site.node, receiver
        case cst.UnaryOperation(operator=cst.Minus(), expression=inner) if number_of(inner) is None:
            yield site.node, inner


def missing_bound(site: Site) -> Iterable[Edit]:
    """A value is not held above, or below, a bound."""
    match site.node:
        case cst.Call(args=[first, second]) if called(site.node) in ("maximum", "minimum") and not is_method(site.node):
            for kept in (first.value, second.value):
                if number_of(kept) is None:
                    yield site.node, kept


def constant(site: Site) -> Iterable[Edit]:
    """A number of the formula is off."""
    value = number_of(site.node)
    inside = isinstance(site.parent, cst.UnaryOperation)
    if isinstance(value, float) and not inside:
        if abs(value) > 1e30:
            yield site.node, cst.Float("0.0") if value > 0 else expression("-1.0")
        elif value == 0.0:
            yield site.node, cst.Float("1.0")
        else:
            yield site.node, expression(f"{value * 1.01!r}")
            yield site.node, expression(f"{value * 2.0!r}")
    elif isinstance(value, int) and _counts(site):
        yield site.node, number(value + 1)


def _counts(site: Site) -> bool:
    """Whether an int is a number of the formula, and not an axis, a shape or an offset (others' faults)."""
    return isinstance(site.parent, cst.BinaryOperation) and not _is_rounding_up(site) and number_of(site.node) != 0


OPERATORS = (
    Operator("missing_term", "a term or factor (scale, bias, state) is missing", missing_term),
    Operator("wrong_operation", "plus for minus, times for divided by", wrong_operation),
    Operator("operand_order", "the operands of an ordered operation are swapped", operand_order),
    Operator("wrong_function", "a neighbouring function (amax/amin, maximum/minimum, sum/amax, ...)", wrong_function),
    Operator("missing_function", "exp, log, rsqrt, ... or a sign is not applied", missing_function),
    Operator("missing_bound", "a clamp is missing", missing_bound),
    Operator("constant", "a constant is 1 % off, doubled, or gone", constant),
)
