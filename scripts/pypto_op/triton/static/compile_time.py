"""Functions under `triton.constexpr_function`: a kernel calls them while it is compiled, with numbers and words.

Where such a function asks for nothing but its arguments, what it returns follows from them alone, and the run looks at them. So
its lines count as followed. One that asks for a global, an attribute or another function is left to be refused when it runs.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator

import libcst as cst

from pypto_op.triton.static.source import SourceFile, nodes_in
from pypto_op.triton.static.values import Ext, Function

NAMES = frozenset({"triton.constexpr_function", "triton.runtime.jit.constexpr_function"})
_BUILTINS = frozenset({
    "abs", "all", "any", "bool", "divmod", "enumerate", "float", "int", "isinstance", "len", "list", "max", "min", "pow", "range",
    "reversed", "round", "str", "sum", "tuple", "zip",
})  # fmt: skip
_MODULE = "math"
_PLAIN = (
    ast.Return, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.If, ast.For, ast.While, ast.Expr, ast.Assert, ast.Pass, ast.Break,
    ast.Continue, ast.expr, ast.expr_context, ast.operator, ast.boolop, ast.unaryop, ast.cmpop, ast.arguments, ast.arg,
    ast.keyword, ast.comprehension, ast.FormattedValue,
)  # fmt: skip
_NOT_PLAIN = (ast.Lambda, ast.Yield, ast.YieldFrom, ast.Await, ast.NamedExpr, ast.Starred)


def followed(function: Function) -> Iterator[tuple[SourceFile, cst.CSTNode]]:
    """Yield the statements of a function that asks for nothing but its arguments; none of any other."""
    node, source = function.node, function.scope.source
    if isinstance(node, cst.FunctionDef) and _is_closed(function, source.module.code_for_node(node)):
        for statement in nodes_in(node.body, cst.SimpleStatementLine, cst.SimpleStatementSuite, cst.If, cst.For, cst.While):
            yield source, statement.body[0] if isinstance(statement, cst.SimpleStatementSuite) else statement


def _is_closed(function: Function, text: str) -> bool:
    tree = ast.parse(textwrap.dedent(text)).body[0]
    assert isinstance(tree, ast.FunctionDef)
    if tree.args.vararg or tree.args.kwarg or tree.args.defaults or any(tree.args.kw_defaults):
        return False
    nodes = [inner for statement in tree.body for inner in ast.walk(statement)]
    if any(isinstance(node, _NOT_PLAIN) or not isinstance(node, _PLAIN) for node in nodes):
        return False
    own = {argument.arg for argument in (*tree.args.posonlyargs, *tree.args.args, *tree.args.kwonlyargs)}
    own |= {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return all(_is_known(node, own, function) for node in nodes)


def _is_known(node: ast.AST, own: set[str], function: Function) -> bool:
    """Whether a name is the function's own or an untouched builtin, and an attribute one of Python's module of mathematics."""
    if isinstance(node, (ast.Subscript, ast.Attribute)) and not isinstance(node.ctx, ast.Load):
        return False
    if isinstance(node, ast.Attribute):
        return isinstance(node.value, ast.Name) and node.value.id not in own and _is_mathematics(node.value.id, function)
    if not isinstance(node, ast.Name) or node.id in own:
        return True
    return (node.id in _BUILTINS and function.scope.lookup(node.id) is None) or _is_mathematics(node.id, function)


def _is_mathematics(name: str, function: Function) -> bool:
    found = function.scope.lookup(name)
    return isinstance(found, Ext) and found.name == _MODULE
