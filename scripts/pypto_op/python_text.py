"""Python that users wrote, as a tree of `ast`: one way to parse it, and the questions that every reader of it asks.

The linter and the checks that follow values read libcst's tree (`pypto_op_lint.parsing`), which keeps comments and blanks.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pypto_op.errors import ContractError

Function = ast.FunctionDef | ast.AsyncFunctionDef
UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
"""What `ast.parse` raises for a text that is no Python, or is nested too deeply."""

Number = TypeVar("Number")


class NoNumber(Exception):
    """An expression does not come to a number."""


def parse(text: str | bytes, file: Path | str) -> ast.Module:
    """Return a file's text as a tree.

    Raises:
        ContractError: it is no Python; names file and line.
    """
    try:
        with warnings.catch_warnings():  # of what Python will say itself when it runs the file
            warnings.simplefilter("ignore", SyntaxWarning)
            return ast.parse(text)
    except SyntaxError as error:
        where = f"line {error.lineno}" if error.lineno else None
        raise ContractError(f"not valid Python: {error.msg}", file=file, where=where, remedy="correct the syntax") from None
    except UNREADABLE:
        raise ContractError("not valid Python: nested too deeply", file=file, remedy="simplify it") from None


def parsed(text: str) -> ast.Module | None:
    """Return a text as a tree; None for what is no Python, for readers that leave the complaint to others."""
    try:
        return ast.parse(text)
    except UNREADABLE:
        return None


def expression(text: str) -> ast.expr | None:
    """Return a text as an expression; None for what is none."""
    try:
        return ast.parse(text, mode="eval").body
    except UNREADABLE:
        return None


def functions_in(tree: ast.Module) -> dict[str, Function]:
    """Return the functions that stand at the top of a file, by name."""
    return {node.name: node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))}


def parameters(function: Function, *, keyword_only: bool = False) -> list[str]:
    """Return the names of a function's parameters in order, those by keyword only if they are asked for."""
    given = function.args
    named = [*given.posonlyargs, *given.args, *(given.kwonlyargs if keyword_only else ())]
    return [argument.arg for argument in named]


def names_in(*nodes: ast.AST) -> set[str]:
    """Return every name that stands in these nodes."""
    return {inner.id for node in nodes for inner in ast.walk(node) if isinstance(inner, ast.Name)}


def bound_in(*targets: ast.AST) -> set[str]:
    """Return the variables that assignment targets bind; a subscript or attribute binds none."""
    return {
        inner.id
        for target in targets
        for inner in ast.walk(target)
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store)
    }


def assignments(node: ast.AST) -> Iterator[tuple[list[ast.expr], ast.expr]]:
    """Yield targets and value of each assignment in a node; a loop assigns its items to its target."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Assign):
            yield inner.targets, inner.value
        elif isinstance(inner, (ast.AugAssign, ast.AnnAssign)) and inner.value is not None:
            yield [inner.target], inner.value
        elif isinstance(inner, (ast.For, ast.AsyncFor, ast.comprehension)):
            yield [inner.target], inner.iter


def evaluate(
    node: ast.expr,
    names: Mapping[str, Number],
    operators: Mapping[type[ast.operator], Callable[[Any, Any], Any]],
    numbers: tuple[type, ...] = (int,),
) -> Any:
    """Return what arithmetic on numbers and names comes to. Never `eval`.

    Args:
        operators: those that are known; a leading minus always is.
        numbers: types that a constant may have; bool is none of them.

    Raises:
        NoNumber: it holds something else, or an operator refuses its operands.
    """
    if isinstance(node, ast.Constant) and type(node.value) in numbers:
        return node.value
    if isinstance(node, ast.Name) and node.id in names:
        return names[node.id]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -evaluate(node.operand, names, operators, numbers)
    if isinstance(node, ast.BinOp) and type(node.op) in operators:
        left, right = (evaluate(side, names, operators, numbers) for side in (node.left, node.right))
        try:
            return operators[type(node.op)](left, right)
        except (ArithmeticError, TypeError) as error:
            raise NoNumber from error
    raise NoNumber
