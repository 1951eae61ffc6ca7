"""Faults of decisions: masks, branches, comparisons, special values."""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst

from pypto_op.mutation.operators.base import Edit, Operator, expression, pass_line
from pypto_op.mutation.program import Site, argument, called

_CALLS = {"ge": ("gt", "le"), "gt": ("ge", "lt"), "le": ("lt", "ge"), "lt": ("le", "gt"), "eq": ("ne",), "ne": ("eq",)}
_SIGNS: dict[type[cst.BaseCompOp], tuple[type[cst.BaseCompOp], ...]] = {
    cst.GreaterThanEqual: (cst.GreaterThan, cst.LessThanEqual),
    cst.GreaterThan: (cst.GreaterThanEqual, cst.LessThan),
    cst.LessThanEqual: (cst.LessThan, cst.GreaterThanEqual),
    cst.LessThan: (cst.LessThanEqual, cst.GreaterThan),
    cst.Equal: (cst.NotEqual,),
    cst.NotEqual: (cst.Equal,),
}


def comparison(site: Site) -> Iterable[Edit]:
    """A comparison is off by the equal case, or reversed."""
    match site.node:
        case cst.Attribute(attr=cst.Name(value=name)) if name in _CALLS and site.function.on_device:
            for other in _CALLS[name]:
                yield site.node, site.node.with_changes(attr=cst.Name(other))
        case cst.Comparison(comparisons=[cst.ComparisonTarget(operator=old) as target]) if type(old) in _SIGNS:
            for kind in _SIGNS[type(old)]:
                yield site.node, site.node.with_changes(comparisons=[target.with_changes(operator=kind())])


def missing_mask(site: Site) -> Iterable[Edit]:
    """A mask is not applied, or applied the wrong way round."""
    if not isinstance(site.node, cst.Call) or called(site.node) != "where":
        return
    match site.node.args:
        case [_, chosen, other, *_]:
            for kept in (chosen, other):
                if site.program.is_tensor(kept.value, site.function) or isinstance(kept.value, cst.Name):
                    yield site.node, kept.value
            args = [site.node.args[0], chosen.with_changes(value=other.value), other.with_changes(value=chosen.value)]
            yield site.node, site.node.with_changes(args=args)


def branch(site: Site) -> Iterable[Edit]:
    """A branch is always taken, or never."""
    match site.node:
        case cst.If(body=cst.IndentedBlock(body=body), orelse=orelse) if not isinstance(site.parent, cst.If):
            yield site.node, cst.FlattenSentinel(body)
            if isinstance(orelse, cst.Else) and isinstance(orelse.body, cst.IndentedBlock):
                yield site.node, cst.FlattenSentinel(orelse.body.body)
            elif orelse is None:
                yield site.node, pass_line()
        case cst.IfExp(body=first, orelse=second):
            yield site.node, first
            yield site.node, second


def nan_swallowed(site: Site) -> Iterable[Edit]:
    """A NaN is replaced by 0 on its way, so that a broken row looks sound."""
    match site.node:
        case cst.Call() if called(site.node) == "assemble":
            source = argument(site.node, 0, "input")
            if source is not None and site.program.is_tensor(source.value, site.function):
                yield source.value, _without_nan(source.value)
        case cst.SimpleStatementLine(body=[cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as name)], value=value)]) if (
            site.function.on_device and site.program.is_tensor(value, site.function) and _floating(value)
        ):
            more = cst.SimpleStatementLine([cst.Assign([cst.AssignTarget(name)], _without_nan(name))])
            yield site.node, cst.FlattenSentinel([site.node, more])


_NOT_FLOATING = frozenset({"tensor", "arange", "ge", "gt", "le", "lt", "eq", "ne"})


def _floating(value: cst.BaseExpression) -> bool:
    return not (isinstance(value, cst.Call) and called(value) in _NOT_FLOATING)


def _without_nan(value: cst.BaseExpression) -> cst.BaseExpression:
    return expression("pypto.where(pypto.eq({v}, {v}), {v}, 0.0)", v=value)


OPERATORS = (
    Operator("comparison", "a comparison is off by the equal case, or reversed", comparison),
    Operator("missing_mask", "a mask is missing or inverted", missing_mask),
    Operator("branch", "a branch is always taken, or never", branch),
    Operator("nan_swallowed", "a NaN is turned into 0", nan_swallowed),
)
