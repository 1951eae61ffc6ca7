"""Names of the module that a kernel reads as plain Python values: Triton's interpreter can, its compiler cannot.

The compiler takes a global only if it is a `tl.constexpr`, by its value or its annotation, or is no value at all: a module, a
type of Triton's, a jitted function (`CodeGenerator._define_name_lookup`, Triton 3). Only what is surely plain is told here.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from pypto_op_lint.liveness import constant_truth, live_statements
from pypto_op_lint.nodes import children, inside

_LITERALS = (cst.Integer, cst.Float, cst.SimpleString, cst.ConcatenatedString)
_PLAIN_MODULES = ("math",)
_PLAIN_CALLS = frozenset({"float", "int", "bool", "str", "len", "round", "abs"})
_WORDS = frozenset({"True", "False", "None"})


def plain_globals(kernel: cst.FunctionDef, module: cst.Module) -> Iterator[tuple[cst.CSTNode, str]]:
    """Yield the first place where a kernel reads each plain value of its module, and the value's name."""
    values = _assigned(module)
    seen = {p.name.value for p in inside(kernel.params) if isinstance(p, cst.Param)}
    seen |= {name.value for target in _targets(kernel.body) for name in inside(target) if isinstance(name, cst.Name)}
    for name in _reads(kernel.body):
        if name.value not in seen:
            seen.add(name.value)
            value = values.get(name.value)
            if value is not None and _is_plain(value, values):
                yield name, name.value


def _assigned(module: cst.Module) -> dict[str, cst.BaseExpression | None]:
    """Return what names of a module are set to at its top level; None where that is not once, or with an annotation."""
    found: dict[str, cst.BaseExpression | None] = {}
    for line in module.body:
        for statement in line.body if isinstance(line, cst.SimpleStatementLine) else ():
            if isinstance(statement, cst.Assign) and len(statement.targets) == 1:
                target, value = statement.targets[0].target, statement.value
                if isinstance(target, cst.Name):
                    found[target.value] = None if target.value in found else value
    nested = [line for line in module.body if not isinstance(line, (cst.SimpleStatementLine, cst.FunctionDef, cst.ClassDef))]
    other = [statement for line in nested for statement in _targets(line)]
    annotated = [node.target for line in module.body for node in inside(line) if isinstance(node, cst.AnnAssign)]
    for name in (name for target in (*other, *annotated) for name in inside(target) if isinstance(name, cst.Name)):
        found[name.value] = None
    return found


def _is_plain(value: cst.BaseExpression, values: dict[str, cst.BaseExpression | None], depth: int = 8) -> bool:
    """Whether an expression is a number, a word or a tuple of such, and surely no object of Triton's."""

    def plain(inner: cst.BaseExpression) -> bool:
        return depth > 0 and _is_plain(inner, values, depth - 1)

    if isinstance(value, _LITERALS):
        return True
    if isinstance(value, cst.Name):
        known = values.get(value.value)
        return value.value in _WORDS or (known is not None and plain(known))
    if isinstance(value, cst.UnaryOperation):
        return plain(value.expression)
    if isinstance(value, (cst.BinaryOperation, cst.BooleanOperation)):
        return plain(value.left) and plain(value.right)
    if isinstance(value, cst.Tuple):
        return all(plain(element.value) for element in value.elements)
    if isinstance(value, cst.Attribute):
        return isinstance(value.value, cst.Name) and value.value.value in _PLAIN_MODULES
    if isinstance(value, cst.Call):
        builtin = isinstance(value.func, cst.Name) and value.func.value in _PLAIN_CALLS - set(values)
        return (builtin or plain(value.func)) and all(plain(argument.value) for argument in value.args)
    return False


def _targets(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yield what assignments and loops in a body bind."""
    for inner in inside(node):
        if isinstance(inner, (cst.AssignTarget, cst.AugAssign, cst.NamedExpr, cst.For, cst.AnnAssign, cst.CompFor)):
            yield inner.target


def _reads(node: cst.CSTNode) -> Iterator[cst.Name]:
    """Yield the names whose values live code asks for: no keywords, attributes or annotations."""
    if isinstance(node, cst.Name):
        yield node
        return
    if isinstance(node, (cst.FunctionDef, cst.ClassDef, cst.Annotation)):
        return
    parts: list[cst.CSTNode] = list(live_statements(node.body)) if isinstance(node, cst.IndentedBlock) else children(node)
    if isinstance(node, (cst.Arg, cst.Attribute)):
        parts = [node.value]
    if isinstance(node, cst.If) and constant_truth(node.test) is False:
        parts = [node.orelse] if node.orelse is not None else []
    for part in parts:
        yield from _reads(part)
