"""Loops whose count is rounded up, and offsets that step with their index: the last step may reach past the data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from pypto_op_lint.facts.flow import bindings_of
from pypto_op_lint.facts.loops import LOOPS
from pypto_op_lint.import_statements import dotted
from pypto_op_lint.nodes import inside
from pypto_op_lint.tree import Binding, Function, Site

if TYPE_CHECKING:
    from pypto_op_lint.facts import Facts

_CEILING = frozenset({"pypto.ceildiv", "pypto.ceil_div"})
_MOST_DEPTH = 4
_UNKNOWN = ""
Key = int | str
"""A number where it is known, else the name that stands for it; `_UNKNOWN` for anything else."""


def ragged_loop(facts: Facts, offsets: cst.CSTNode) -> Site | None:
    """Return a loop with a rounded count by whose index `offsets` steps; None where there is none.

    The index may be written in `offsets`, or reach it through names and the arguments of callers; then it counts only
    where it is multiplied on the way by what the count was divided by.
    """
    waiting: list[tuple[cst.CSTNode, frozenset[Key], bool]] = [(offsets, frozenset(), True)]
    seen: set[tuple[int, frozenset[Key]]] = set()
    while waiting:
        node, factors, direct = waiting.pop()
        for name in _names_outside_of_indices(node):
            scaled = factors | _factors(facts, name, node)
            for binding, function in bindings_of(facts.tree, name):
                if (id(binding), scaled) in seen:
                    continue
                seen.add((id(binding), scaled))
                loop = binding.site.node
                if binding.kind == "loop" and isinstance(loop, cst.For):
                    divisors = _divisors_of_count(facts, loop.iter)
                    if divisors and (direct or divisors & scaled - {_UNKNOWN}):
                        return binding.site
                elif binding.kind == "assign" and binding.value is not None:
                    waiting.append((binding.value, scaled, False))
                else:
                    waiting.extend((argument, scaled, False) for argument in _arguments(facts, binding, function))
    return None


def _names_outside_of_indices(node: cst.CSTNode) -> Iterator[cst.Name]:
    """The names inside `node`, but not those that pick an entry: what stands in a table of blocks is no step."""
    picked = {id(inner) for part in inside(node) if isinstance(part, cst.Subscript) for e in part.slice for inner in inside(e)}
    return (inner for inner in inside(node) if isinstance(inner, cst.Name) and id(inner) not in picked)


def _factors(facts: Facts, name: cst.Name, top: cst.CSTNode) -> frozenset[Key]:
    """What `name` is multiplied by inside `top`."""
    found: set[Key] = set()
    site = facts.tree.site(name)
    while site is not None and site.node is not top and site.parent is not None:
        around = site.parent.node
        if isinstance(around, cst.BinaryOperation) and isinstance(around.operator, cst.Multiply):
            found.add(_key(facts, around.right if site.role == "left" else around.left))
        site = site.parent
    return frozenset(found)


def _key(facts: Facts, node: cst.BaseExpression) -> Key:
    constant = facts.ev.constant(node)
    if constant is not None and isinstance(constant.value, int):
        return constant.value
    return dotted(node)


def _divisors_of_count(facts: Facts, over: cst.BaseExpression) -> set[Key]:
    """What the count of `pypto.loop(...)` is divided by and rounded up; empty where it is not."""
    if not isinstance(over, cst.Call) or not facts.callee_names(over) & LOOPS:
        return set()
    counts = [arg.value for arg in over.args if arg.keyword is None and facts.ev.constant(arg.value) is None]
    return {divisor for count in counts for divisor in _divisors(facts, count, 0)}


def _divisors(facts: Facts, node: cst.CSTNode, depth: int) -> Iterator[Key]:
    """`(n + t - 1) // t`, `n // t + 1`, `-(-n // t)`, `pypto.ceildiv(n, t)`, or a name or argument that is one: t."""
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.FloorDivide):
        if isinstance(node.left, cst.BinaryOperation) and isinstance(node.left.operator, (cst.Add, cst.Subtract)):
            yield _key(facts, node.right)
    elif isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Add):
        if isinstance(node.left, cst.BinaryOperation) and isinstance(node.left.operator, cst.FloorDivide):
            yield _key(facts, node.left.right)
    elif isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
        inner = node.expression
        if isinstance(inner, cst.BinaryOperation) and isinstance(inner.left, cst.UnaryOperation):
            yield _key(facts, inner.right)
    elif isinstance(node, cst.Call):
        if facts.callee_names(node) & _CEILING and len(node.args) > 1:
            yield _key(facts, node.args[1].value)
    elif isinstance(node, cst.Name) and depth < _MOST_DEPTH:
        for binding, function in bindings_of(facts.tree, node):
            plain = binding.kind == "assign" and not binding.path and binding.value is not None
            values = [binding.value] if plain else _arguments(facts, binding, function)
            for value in values:
                if value is not None:
                    yield from _divisors(facts, value, depth + 1)


def _arguments(facts: Facts, binding: Binding, function: Function | None) -> list[cst.BaseExpression]:
    """What the file's callers pass for the parameter that a binding is."""
    if binding.kind != "parameter" or function is None or not isinstance(binding.value, cst.Param):
        return []
    parameter = function.parameter(binding.value.name.value)
    if parameter is None:
        return []
    given = [call.argument(parameter) for call in facts.calls.calls_of(function)]
    return [argument for argument in given if argument is not None]
