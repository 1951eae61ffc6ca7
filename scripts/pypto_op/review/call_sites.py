"""Every call of a pypto function in a file, in the order of the text.

A call counts when the callee resolves to something inside the package `pypto`: through `import pypto [as
p]`, `import pypto.frontend as fe`, `from pypto import exp [as e]`, `from pypto import *`, an alias
assigned in the file (`op = pypto.exp`), or `getattr(pypto, "exp")`. A decorator without parentheses is a
call too: Python calls it. Methods of tensors (`x.exp()`) are not listed, since their receiver's type
cannot be told from the text.
"""

from __future__ import annotations

import ast
import builtins
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import libcst as cst
from libcst import metadata as meta
from libcst.helpers import get_full_name_for_node

PACKAGE = "pypto"
Kind = Literal["attr", "short_import"]


@dataclass(frozen=True, order=True)
class CallSite:
    """One call.

    Attributes:
        line: line in the file, from 1.
        col: column in that line, from 0.
        call: full dotted name of the callee, aliases resolved ("pypto.frontend.jit").
        kind: "attr" when it is reached through the module's name, "short_import" when through a name that was
            imported from it or assigned in the file.
    """

    line: int
    col: int
    call: str
    kind: Kind

    def as_dict(self) -> dict[str, object]:
        """Return the four fields in order."""
        return asdict(self)


def extract_calls(path: Path) -> list[CallSite]:
    """Return the pypto calls in the file at `path`, sorted by position.

    Raises:
        FileNotFoundError: `path` is not a file.
        SyntaxError: it is not Python, or not text.
    """
    if not path.is_file():
        raise FileNotFoundError(path)
    return extract_calls_from_source(path.read_bytes())


def extract_calls_from_source(source: bytes | str) -> list[CallSite]:
    """Return the pypto calls in a module's source, sorted by position.

    Raises:
        SyntaxError: the source does not parse; the message names the line.
    """
    _check_syntax(source)
    try:
        module = cst.parse_module(source)
        visitor = _CallVisitor()
        meta.MetadataWrapper(module, unsafe_skip_copy=True).visit(visitor)
    except cst.ParserSyntaxError as error:
        raise SyntaxError(f"line {error.raw_line}: {error.message.splitlines()[0]}") from None
    except UnicodeError as error:
        raise SyntaxError(f"cannot be decoded: {error}") from None
    except RecursionError:
        raise SyntaxError("nested too deeply") from None
    return sorted(visitor.sites)


def _check_syntax(source: bytes | str) -> None:
    """Let CPython refuse what it cannot parse: libcst's parser dies of a stack overflow on deep nesting."""
    try:
        ast.parse(source)
    except SyntaxError as error:
        raise SyntaxError(f"line {error.lineno}: {error.msg}" if error.lineno else error.msg) from None
    except (RecursionError, MemoryError):
        raise SyntaxError("nested too deeply") from None
    except ValueError as error:
        raise SyntaxError(str(error)) from None


class _CallVisitor(cst.CSTVisitor):
    METADATA_DEPENDENCIES = (
        meta.PositionProvider,
        meta.ScopeProvider,
        meta.ParentNodeProvider,
    )

    def __init__(self) -> None:
        super().__init__()
        self.sites: list[CallSite] = []
        self._star_imported = False

    def visit_ImportFrom(self, node: cst.ImportFrom) -> None:
        if isinstance(node.names, cst.ImportStar) and not node.relative:
            self._star_imported |= node.module is not None and get_full_name_for_node(node.module) == PACKAGE

    def visit_Call(self, node: cst.Call) -> None:
        self._record(node.func, node)

    def visit_Decorator(self, node: cst.Decorator) -> None:
        if not isinstance(node.decorator, cst.Call):
            self._record(node.decorator, node.decorator)

    def _record(self, callee: cst.BaseExpression, at: cst.CSTNode) -> None:
        found = self._resolve(callee, set())
        if found is None:
            return
        name, kind = found
        if name.startswith(f"{PACKAGE}."):
            start = self.get_metadata(meta.PositionProvider, at).start
            self.sites.append(CallSite(start.line, start.column, name, kind))

    def _resolve(self, node: cst.CSTNode, seen: set[cst.CSTNode]) -> tuple[str, Kind] | None:
        """Return the dotted name of `node` and how it is reached; None when not pypto's."""
        if node in seen:
            return None
        seen.add(node)
        if isinstance(node, cst.Name):
            return self._resolve_name(node, seen)
        if isinstance(node, cst.Attribute):
            base, tail = self._resolve(node.value, seen), node.attr.value
        elif isinstance(node, cst.Call) and (literal := _getattr_literal(node)) is not None:
            base, tail = self._resolve(node.args[0].value, seen), literal
        else:
            return None
        return (f"{base[0]}.{tail}", base[1]) if base else None

    def _resolve_name(self, node: cst.Name, seen: set[cst.CSTNode]) -> tuple[str, Kind] | None:
        scope = self.get_metadata(meta.ScopeProvider, node, None)
        assignments = scope[node.value] if isinstance(scope, meta.Scope) else set()
        for assignment in assignments:
            if isinstance(assignment, meta.ImportAssignment):
                found = _imported(assignment, node.value)
            elif isinstance(assignment, meta.Assignment):
                value = self._assigned_value(assignment.node)
                resolved = self._resolve(value, seen) if value is not None else None
                found = (resolved[0], "short_import") if resolved else None
            else:
                continue
            if found and (found[0] == PACKAGE or found[0].startswith(f"{PACKAGE}.")):
                return found
        unbound = not any(isinstance(a, meta.Assignment) for a in assignments)
        if self._star_imported and unbound and not hasattr(builtins, node.value):
            return f"{PACKAGE}.{node.value}", "short_import"
        return None

    def _assigned_value(self, target: cst.CSTNode) -> cst.BaseExpression | None:
        """Return the right-hand side of `name = value`, `name: T = value` or `(name := value)`."""
        parent = self.get_metadata(meta.ParentNodeProvider, target, None)
        if isinstance(parent, (cst.AnnAssign, cst.NamedExpr)):
            return parent.value
        if isinstance(parent, cst.AssignTarget):
            statement = self.get_metadata(meta.ParentNodeProvider, parent)
            return statement.value if isinstance(statement, cst.Assign) else None
        return None


def _imported(assignment: meta.ImportAssignment, name: str) -> tuple[str, Kind] | None:
    names = {q.name for q in assignment.get_qualified_names_for(name)}
    if not names:
        return None
    kind: Kind = "attr" if isinstance(assignment.node, cst.Import) else "short_import"
    return min(names), kind


def _getattr_literal(node: cst.Call) -> str | None:
    if not (isinstance(node.func, cst.Name) and node.func.value == "getattr" and len(node.args) >= 2):
        return None
    literal = node.args[1].value
    if isinstance(literal, cst.SimpleString) and isinstance(literal.evaluated_value, str):
        return literal.evaluated_value
    return None
