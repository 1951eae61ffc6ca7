"""Functions under `triton.constexpr_function` or `tl.constexpr`: a kernel calls them while it is compiled.

Where such a function asks for nothing but its arguments, what it returns follows from them alone, and the run looks at them. So
its lines count as followed. One that asks for a global, an attribute or another function is left to be refused when it runs.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator

import libcst as cst

from pypto_op.triton.static.source import SourceFile, nodes_in
from pypto_op.triton.static.values import Ext, Function

_LANGUAGES = ("triton.language", "triton.language.core")
NAMES = frozenset(
    {"triton.constexpr_function", "triton.runtime.jit.constexpr_function", *(f"{language}.constexpr" for language in _LANGUAGES)}
)
_OF_TYPE = re.compile(r"is_[a-z0-9_]+|primitive_bitwidth|int_bitwidth|itemsize")
"""What a type of Triton's is asked; a number or a word has no such attributes."""
_TYPE = re.compile(r"u?int\d+|b?float\d+\w*|void")
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
    """Whether a name is the function's own or an untouched builtin, and an attribute one of a type, or of a known module."""
    if isinstance(node, (ast.Subscript, ast.Attribute)) and not isinstance(node.ctx, ast.Load):
        return False
    if isinstance(node, ast.Attribute):
        if not isinstance(node.value, ast.Name):
            return False
        if node.value.id in own:
            return _OF_TYPE.fullmatch(node.attr) is not None
        module = _module(node.value.id, function)
        return module == _MODULE or (module in _LANGUAGES and _TYPE.fullmatch(node.attr) is not None)
    if not isinstance(node, ast.Name) or node.id in own:
        return True
    untouched = node.id in _BUILTINS and function.scope.lookup(node.id) is None
    return untouched or _module(node.id, function) in (_MODULE, *_LANGUAGES)


def _module(name: str, function: Function) -> str:
    found = function.scope.lookup(name)
    return found.name if isinstance(found, Ext) else ""
