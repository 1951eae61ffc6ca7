"""Every call of a pypto function in a file, in the order of the text.

A call counts when the linter's evaluator (`pypto_op_lint.facts`) resolves the callee to something inside the package `pypto`:
through `import pypto [as p]`, `from pypto import exp [as e]`, `from pypto import *`, an alias assigned in the file
(`op = pypto.exp`), or `getattr(pypto, "exp")`. A decorator without parentheses is a call too: Python calls it. Methods of
tensors (`x.exp()`) are not listed, since their receiver's type cannot be told from the text; nor is code that never runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import libcst as cst

from pypto_op_lint.facts import Facts
from pypto_op_lint.parsing import parse_file
from pypto_op_lint.source import read_source
from pypto_op_lint.tree import Tree

Kind = Literal["attr", "short_import"]


@dataclass(frozen=True, order=True)
class CallSite:
    """One call."""

    line: int  # line in the file, from 1
    col: int  # column in that line, from 0
    call: str  # full dotted name of the callee, aliases resolved ("pypto.frontend.jit")
    # "attr" when it is reached through the module's name, "short_import" when through a name that was imported from it or
    # assigned in the file
    kind: Kind

    def as_dict(self) -> dict[str, object]:
        """Return the four fields in order."""
        return asdict(self)


def extract_calls(path: Path) -> list[CallSite]:
    """Return the pypto calls in the file at `path`, sorted by position.

    Raises:
        UnreadableSource: it is missing, no text, or no Python.
    """
    return calls_of(Facts(Tree(parse_file(read_source(path).text))))


def calls_of(facts: Facts) -> list[CallSite]:
    """Return the pypto calls of a file that was read, sorted by position."""
    found = []
    for callee, at in _callees(facts):
        names = sorted(name for name in facts.foreign_names(callee) if name.startswith("pypto."))
        if names:
            line, column, *_ = facts.tree.position(at)
            found.append(CallSite(line, column, names[0], _kind(facts, callee)))
    return sorted(found)


def _callees(facts: Facts) -> Iterator[tuple[cst.BaseExpression, cst.CSTNode]]:
    """Yield what is called, and where."""
    for site in facts.tree.sites(cst.Call):
        yield site.node.func, site.node  # type: ignore[attr-defined]
    for function in facts.tree.functions:
        yield from ((decorator, decorator) for decorator in function.decorators if not isinstance(decorator, cst.Call))


def _kind(facts: Facts, callee: cst.BaseExpression) -> Kind:
    """Say whether the name that a callee begins with is the module's."""
    node: cst.BaseExpression = callee
    while isinstance(node, (cst.Attribute, cst.Call)):
        node = node.value if isinstance(node, cst.Attribute) else node.args[0].value if node.args else node.func
    site = facts.tree.site(node)
    found = site.scope.lookup(node.value) if site is not None and isinstance(node, cst.Name) else None
    return "attr" if found and all(isinstance(binding.site.node, cst.Import) for binding in found[1]) else "short_import"
