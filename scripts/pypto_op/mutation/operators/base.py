"""What a mutation operator is."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

import libcst as cst

from pypto_op.mutation.program import Site

Replacement: TypeAlias = cst.CSTNode | cst.FlattenSentinel[cst.BaseStatement]
Edit: TypeAlias = tuple[cst.CSTNode, Replacement]
"""A node of the file, and what stands in its place in the mutant."""


@dataclass(frozen=True)
class Operator:
    """One kind of fault."""

    name: str  # how it is called on the command line and in reports
    fault: str  # what goes wrong, in one line
    edits: Callable[[Site], Iterable[Edit]]  # for a site, every way to plant the fault there


def expression(code: str, **parts: cst.CSTNode) -> cst.BaseExpression:
    """Parse an expression with `{name}` for each of `parts`."""
    from libcst.helpers import parse_template_expression

    return parse_template_expression(code, **parts)  # type: ignore[arg-type]


def number(value: int) -> cst.Integer:
    """Return a literal."""
    return cst.Integer(str(value))


def grouped(node: cst.BaseExpression) -> cst.BaseExpression:
    """Return an expression in parentheses, where it could otherwise fall apart."""
    if isinstance(node, (cst.BinaryOperation, cst.UnaryOperation, cst.Comparison, cst.IfExp, cst.BooleanOperation)):
        return node if node.lpar else node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    return node


def pass_line() -> cst.SimpleStatementLine:
    """Return the statement `pass`."""
    return cst.SimpleStatementLine([cst.Pass()])
