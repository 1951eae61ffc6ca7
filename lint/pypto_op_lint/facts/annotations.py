"""What the annotations of a kernel's parameters say about its axes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from pypto_op_lint.facts.tensors import TENSOR_ANNOTATIONS
from pypto_op_lint.facts.values import Const, Path, Result, Seq, Value

if TYPE_CHECKING:
    from pypto_op_lint.facts import Facts
    from pypto_op_lint.tree import Parameter

_DYNAMIC = frozenset({"pypto.DYNAMIC", "pypto.DYN"})
_MAKES_SYMBOL = frozenset({"pypto.frontend.dynamic", "pypto.SymbolicScalar", "pypto.symbolic_scalar"})
"""Calls whose result stands for a dynamic axis, as pypto.DYNAMIC does; with a name, the same axis wherever it stands."""
_MOST_DEPTH = 8


def shape_and_dtype(facts: Facts, node: cst.BaseExpression) -> tuple[cst.BaseExpression | None, cst.BaseExpression | None] | None:
    """Return the (shape, dtype) that a tensor's annotation gives, itself or by a name or helper of the file; None: unknown."""
    if isinstance(node, cst.Subscript):
        items = [e.slice.value for e in node.slice if isinstance(e.slice, cst.Index)]
        return (items[0] if items else None), (items[1] if len(items) > 1 else None)
    call = _made_by(facts, node)
    if call is None:
        return (None, None) if facts.ev.paths(node) & TENSOR_ANNOTATIONS else None
    if any(a.star for a in call.args):
        return None
    plain = [a.value for a in call.args if a.keyword is None]
    named = {a.keyword.value: a.value for a in call.args if a.keyword is not None}
    return (plain[0] if plain else named.get("shape")), (plain[1] if len(plain) > 1 else named.get("dtype"))


def _made_by(facts: Facts, node: cst.BaseExpression) -> cst.Call | None:
    """The call of pypto.Tensor that an annotation stands for."""
    found = facts.ev.values(node)
    return next((v.call for v in found if isinstance(v, Result) and v.callee in TENSOR_ANNOTATIONS), None)


def has_dynamic_axis(facts: Facts) -> bool:
    """Whether a tensor parameter of a kernel has an axis marked pypto.DYNAMIC (or -1), directly or through a name."""
    for kernel in facts.kernels:
        for parameter in kernel.parameters:
            annotation = parameter.node.annotation
            if annotation is not None and facts.tensors.is_tensor_parameter(parameter) and _dynamic(facts, annotation.annotation):
                return True
    return False


def axis_marks(facts: Facts, parameter: Parameter) -> list[bool | None] | None:
    """For each axis of a kernel's tensor: dynamic, not dynamic, or not known; None where the axes are not told one by one."""
    annotation = parameter.node.annotation
    declared = shape_and_dtype(facts, annotation.annotation) if annotation is not None else None
    values = facts.ev.values(declared[0]) if declared is not None and declared[0] is not None else ()
    if len(values) != 1 or not isinstance(values[0], Seq):
        return None
    return [_axis(item) for item in values[0].items]


def _axis(values: tuple[Value, ...]) -> bool | None:
    if any(_marks(value, 0) or getattr(value, "value", None) == -1 for value in values):
        return True
    # A size that the kernel is built for (`x.shape[1]`, a builder's argument) is no fault: there is a kernel for each.
    return False if all(isinstance(value, Const) for value in values) else None


def _dynamic(facts: Facts, node: cst.BaseExpression) -> bool:
    parts: list[cst.BaseExpression] = []
    if isinstance(node, cst.Subscript):
        parts = [e.slice.value for e in node.slice if isinstance(e.slice, cst.Index)]
    elif (call := _made_by(facts, node)) is not None:
        parts = [a.value for a in call.args]
    return any(_marks(value, 0) for part in parts for value in facts.ev.values(part)) or any(
        _spells(facts, part) for part in parts
    )


def _marks(value: Value, depth: int) -> bool:
    if depth > _MOST_DEPTH:
        return False
    if isinstance(value, Path):
        return value.name in _DYNAMIC
    if isinstance(value, Result):
        return value.callee in _MAKES_SYMBOL
    if isinstance(value, Seq):
        return any(_marks(inner, depth + 1) or getattr(inner, "value", None) == -1 for item in value.items for inner in item)
    return False


def _spells(facts: Facts, node: cst.BaseExpression) -> bool:
    """A shape that is put together (`[pypto.DYNAMIC] + TAIL`): look at its parts."""
    if isinstance(node, cst.BinaryOperation):
        return _spells(facts, node.left) or _spells(facts, node.right)
    return any(_marks(value, 0) for value in facts.ev.values(node))
