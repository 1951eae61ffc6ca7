"""Literals and constant folding of a syntax tree: the one table of operators, with limits on what a fold may cost."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import libcst as cst

from pypto_op_lint.nodes import text_of


class _Nothing:
    """The type of `NOTHING`."""


NOTHING: Any = _Nothing()
"""What has no constant value that is known; None is a constant."""

NAMED = {"True": True, "False": False, "None": None}
"""Names that are constants."""

BINARY: dict[type, Callable[[Any, Any], Any]] = {
    cst.Add: operator.add,
    cst.Subtract: operator.sub,
    cst.Multiply: operator.mul,
    cst.Divide: operator.truediv,
    cst.FloorDivide: operator.floordiv,
    cst.Modulo: operator.mod,
    cst.Power: operator.pow,
    cst.LeftShift: operator.lshift,
    cst.RightShift: operator.rshift,
    cst.BitAnd: operator.and_,
    cst.BitOr: operator.or_,
    cst.BitXor: operator.xor,
}
UNARY: dict[type, Callable[[Any], Any]] = {
    cst.Minus: operator.neg,
    cst.Plus: operator.pos,
    cst.BitInvert: operator.invert,
    cst.Not: operator.not_,
}
COMPARE: dict[type, Callable[[Any, Any], bool]] = {
    cst.Equal: operator.eq,
    cst.NotEqual: operator.ne,
    cst.LessThan: operator.lt,
    cst.LessThanEqual: operator.le,
    cst.GreaterThan: operator.gt,
    cst.GreaterThanEqual: operator.ge,
}
_LARGEST = 1 << 256


def literal(node: cst.CSTNode) -> Any:
    """Return what a number or a string stands for; NOTHING for any other node, and where Python could not read it."""
    try:
        if isinstance(node, cst.Integer):
            return int(node.value, 0)
        if isinstance(node, cst.Float):
            return float(node.value)
        if isinstance(node, cst.SimpleString):
            text = text_of(node.value)
        elif isinstance(node, cst.ConcatenatedString):
            text = node.evaluated_value
        else:
            return NOTHING
    except (ValueError, SyntaxError, AttributeError):
        return NOTHING
    return NOTHING if text is None else text


def number_of(node: cst.CSTNode) -> int | float | None:
    """Return the value of a number, signed or not; None for anything else."""
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
        inner = number_of(node.expression) if isinstance(node.expression, (cst.Integer, cst.Float)) else None
        return None if inner is None else -inner
    value = literal(node)
    return value if isinstance(value, (int, float)) else None


def fold(function: Callable[..., Any], *operands: Any) -> Any:
    """Return what an operator or a pure function makes of constants; NOTHING where it refuses them, or the result is huge."""
    try:
        return bounded(function(*operands)) if _is_cheap(function, operands) else NOTHING
    except (TypeError, ValueError, ArithmeticError):
        return NOTHING


def bounded(value: Any) -> Any:
    """Return a constant, NOTHING for a number so large that folding on with it costs time."""
    return NOTHING if isinstance(value, int) and abs(value) > _LARGEST else value


def _is_cheap(function: Callable[..., Any], operands: tuple[Any, ...]) -> bool:
    if function in (operator.pow, operator.lshift, pow):
        return all(isinstance(side, (int, float)) for side in operands) and abs(operands[-1]) <= 256
    is_text = [isinstance(side, (str, bytes)) for side in operands]
    if function is operator.mul and any(is_text):
        return False
    return function is not operator.mod or not is_text[0]
