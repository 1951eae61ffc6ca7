"""Which dtype a tensor of the graph has, as far as the file tells."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from pypto_op_lint.facts.annotations import shape_and_dtype
from pypto_op_lint.facts.flow import bindings_of
from pypto_op_lint.facts.values import Const, Func
from pypto_op_lint.tree import Function, Parameter

if TYPE_CHECKING:
    from pypto_op_lint.facts import Facts

_KEEPS = {
    "view", "reshape", "exp", "add", "sub", "mul", "div", "maximum", "minimum", "abs", "sqrt", "rsqrt", "clip",
    "transpose", "unsqueeze", "squeeze", "clone", "expand_clone", "concat", "neg", "log", "sum", "amax", "amin",
}  # fmt: skip
"""Operations whose result has the dtype of their first operand."""
_MOST_DEPTH = 12


def dtypes_of(facts: Facts, node: cst.CSTNode | None, depth: int = 0) -> set[str]:
    """Return the dtypes (`FP32`) that a graph expression may have, through casts, helpers and names; empty: not known."""
    if depth > _MOST_DEPTH:
        return set()
    key = (id(node), depth)
    if key not in facts.dtypes:  # kept, or names that are bound in terms of one another take exponential time
        facts.dtypes[key] = _look(facts, node, depth)
    return facts.dtypes[key]


def _look(facts: Facts, node: cst.CSTNode | None, depth: int) -> set[str]:
    if isinstance(node, cst.Name):
        return _of_name(facts, node, depth)
    if isinstance(node, cst.Call):
        return _of_call(facts, node, depth)
    if isinstance(node, cst.Subscript):
        return dtypes_of(facts, node.value, depth + 1)
    if isinstance(node, cst.BinaryOperation):
        tensors = [side for side in (node.left, node.right) if not isinstance(facts.ev.constant(side), Const)]
        return _all_known([dtypes_of(facts, side, depth + 1) for side in tensors])
    return set()


def named_dtypes(facts: Facts, node: cst.CSTNode | None) -> set[str]:
    """Return the dtypes that an expression such as `pypto.DT_FP32` names."""
    return {name.removeprefix("pypto.DT_") for name in facts.ev.paths(node) if name.startswith("pypto.DT_")}


def declared_dtypes(facts: Facts, parameter: Parameter) -> set[str]:
    """Return the dtypes that the annotation of a kernel's parameter gives."""
    annotation = parameter.node.annotation
    declared = shape_and_dtype(facts, annotation.annotation) if annotation is not None else None
    return named_dtypes(facts, declared[1]) if declared is not None else set()


def _all_known(found: list[set[str]]) -> set[str]:
    return set().union(*found) if all(found) else set()


def _of_name(facts: Facts, node: cst.Name, depth: int) -> set[str]:
    found: list[set[str]] = []
    for binding, function in bindings_of(facts.tree, node):
        if binding.kind == "parameter" and function is not None and isinstance(binding.value, cst.Param):
            parameter = function.parameter(binding.value.name.value)
            found.append(_of_parameter(facts, function, parameter, depth) if parameter is not None else set())
        elif binding.kind != "augmented":  # an augmented name keeps the dtype that its other bindings give it
            plain = binding.kind == "assign" and not binding.path
            found.append(dtypes_of(facts, binding.value, depth + 1) if plain else set())
    return _all_known(found)


def _of_parameter(facts: Facts, function: Function, parameter: Parameter, depth: int) -> set[str]:
    if facts.is_kernel(function):
        return declared_dtypes(facts, parameter)
    return _all_known([dtypes_of(facts, c.argument(parameter), depth + 1) for c in facts.calls.calls_of(function)])


def _of_call(facts: Facts, node: cst.Call, depth: int) -> set[str]:
    functions = [v.function for v in facts.ev.values(node.func) if isinstance(v, Func)]
    if functions:
        results = [r for f in functions for r in ([f.node.body] if isinstance(f.node, cst.Lambda) else f.returned)]
        return _all_known([dtypes_of(facts, result, depth + 1) for result in results])
    given = {name for arg in node.args for name in named_dtypes(facts, arg.value)}
    names = facts.callee_names(node)
    if given:
        return given
    if names:
        keeps = all(name.removeprefix("pypto.") in _KEEPS for name in names)
        return dtypes_of(facts, node.args[0].value, depth + 1) if keeps and node.args else set()
    if isinstance(node.func, cst.Attribute) and node.func.attr.value in _KEEPS:
        return dtypes_of(facts, node.func.value, depth + 1)
    return set()
