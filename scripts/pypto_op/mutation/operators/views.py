"""Faults of addressing: where a tile is read or written, and how much of it counts."""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst

from pypto_op.mutation.operators.base import Edit, Operator, expression, grouped, number
from pypto_op.mutation.program import Site, argument, called
from pypto_op_lint.constants import number_of

_OFFSETS = {"view": (2, "offsets"), "assemble": (1, "offsets")}


def _offsets(call: cst.Call) -> cst.BaseExpression | None:
    place = _OFFSETS.get(called(call))
    found = argument(call, *place) if place else None
    return found.value if found else None


def _items(node: cst.BaseExpression | None) -> list[cst.BaseExpression]:
    return [item.value for item in node.elements] if isinstance(node, (cst.List, cst.Tuple)) else []


def view_offset(site: Site) -> Iterable[Edit]:
    """A tile is read from, or written to, another place."""
    if not isinstance(site.node, cst.Call):
        return
    for item in _items(_offsets(site.node)):
        if number_of(item) != 0:
            yield item, number(0)
            yield item, expression("{x} + 1", x=grouped(item))


def wrong_tail(site: Site) -> Iterable[Edit]:
    """The rows of the last tile are not counted right."""
    match site.node:
        case cst.Call(args=[first, second]) if called(site.node) in ("min", "max") and site.function.on_device:
            if site.program.is_tensor(first.value, site.function):
                return
            yield site.node, second.value
            yield site.node, first.value
            yield first.value, expression("{x} - 1", x=grouped(first.value))


def valid_shape(site: Site) -> Iterable[Edit]:
    """The padding of a ragged tile counts."""
    if not isinstance(site.node, cst.Call):
        return
    given = [arg for arg in site.node.args if arg.keyword is not None and arg.keyword.value == "valid_shape"]
    if not given:
        return
    rest = [arg for arg in site.node.args if arg is not given[0]]
    rest[-1] = rest[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
    yield site.node, site.node.with_changes(args=rest)
    whole = argument(site.node, 1, "shape")
    sizes = _items(whole.value if whole else None)
    for item, size in zip(_items(given[0].value), sizes, strict=False):
        if not item.deep_equals(size):
            yield item, size
            yield item, number(1)


def transposed(site: Site) -> Iterable[Edit]:
    """A matrix product takes an operand the wrong way round."""
    if not isinstance(site.node, cst.Call) or called(site.node) != "matmul":
        return
    given = {arg.keyword.value: arg for arg in site.node.args if arg.keyword is not None}
    for flag in ("a_trans", "b_trans"):
        if flag in given:
            value = given[flag].value
            yield value, cst.Name("False" if getattr(value, "value", "") == "True" else "True")
        else:
            args = [*site.node.args, cst.Arg(cst.Name("True"), keyword=cst.Name(flag), equal=_TIGHT)]
            args[-2] = args[-2].with_changes(comma=cst.Comma(whitespace_after=cst.SimpleWhitespace(" ")))
            yield site.node, site.node.with_changes(args=args)


_TIGHT = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
_REDUCTIONS = frozenset({"sum", "amax", "amin", "prod", "cumsum", "softmax", "topk", "mean", "argmax", "concat", "transpose"})


def axis(site: Site) -> Iterable[Edit]:
    """A reduction runs over another axis."""
    if not isinstance(site.node, cst.Call) or called(site.node) not in _REDUCTIONS or not site.function.on_device:
        return
    found = argument(site.node, 1, "dim")
    value = number_of(found.value) if found else None
    if found and isinstance(value, int):
        yield found.value, number(0 if value else 1)
        if value == -1:
            yield found.value, expression("-2")


OPERATORS = (
    Operator("view_offset", "a tile is read or written at another offset", view_offset),
    Operator("wrong_tail", "the valid rows of the last tile are miscounted", wrong_tail),
    Operator("valid_shape", "padding counts as data, or data as padding", valid_shape),
    Operator("transpose_flag", "an operand of a matrix product is transposed wrongly", transposed),
    Operator("axis", "a reduction runs over another axis", axis),
)
