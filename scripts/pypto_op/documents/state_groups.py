"""Which loops of a golden carry state: variables whose value in one round comes from the round before.

All that one loop carries is one group: the m, l and o of an online softmax need one another. An accumulation into
a slice (`dq[rows] += ...`) belongs to the innermost loop whose index does not choose the slice.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from pypto_op.python_text import Function, bound_in, names_in

Loop = ast.For | ast.AsyncFor | ast.While


@dataclass(frozen=True)
class StateGroup:
    """The state of one loop."""

    line: int  # the loop's line
    names: tuple[str, ...]  # what it carries, sorted


@dataclass
class _Scan:
    """One pass over a loop's body in order: what is read before it is certainly written in the same round."""

    written: set[str] = field(default_factory=set)
    read_first: set[str] = field(default_factory=set)
    assigned: set[str] = field(default_factory=set)

    def statements(self, body: list[ast.stmt]) -> None:
        for statement in body:
            self.statement(statement)

    def statement(self, node: ast.stmt) -> None:
        if isinstance(node, (ast.If, ast.Try)):
            self._branches(node)
        elif isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
            self._reads(node.iter if not isinstance(node, ast.While) else node.test)
            inner = _Scan(set(self.written), self.read_first, self.assigned)
            inner.written |= bound_in(node.target) if not isinstance(node, ast.While) else set()
            inner.statements(node.body)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            for item in node.items:
                self._reads(item.context_expr)
            self.statements(node.body)
        elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            self._assignment(node)
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            self._reads(node)

    def _assignment(self, node: ast.Assign | ast.AnnAssign | ast.AugAssign) -> None:
        if node.value is not None:
            self._reads(node.value)
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            for part in ast.walk(target):
                if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
                    self._read(part.id)
            if isinstance(node, ast.AugAssign) and isinstance(target, ast.Name):
                self._read(target.id)
            new = bound_in(target)
            self.assigned |= new
            self.written |= new

    def _branches(self, node: ast.If | ast.Try) -> None:
        if isinstance(node, ast.If):
            self._reads(node.test)
            bodies = [node.body, node.orelse]
        else:
            bodies = [node.body, *[handler.body for handler in node.handlers], node.orelse + node.finalbody]
        outcomes = []
        for body in bodies:
            branch = _Scan(set(self.written), self.read_first, self.assigned)
            branch.statements(body)
            outcomes.append(branch.written)
        self.written |= set.intersection(*outcomes)

    def _reads(self, node: ast.AST) -> None:
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
                self._read(part.id)

    def _read(self, name: str) -> None:
        if name not in self.written:
            self.read_first.add(name)


def loop_state_groups(function: Function) -> list[StateGroup]:
    """Return one group for each loop of `function` that carries state, nested loops included."""
    groups: dict[int, set[str]] = {}
    _visit(function.body, [], groups)
    return [StateGroup(line, tuple(sorted(names))) for line, names in sorted(groups.items()) if names]


def _visit(body: list[ast.stmt], outer: list[Loop], groups: dict[int, set[str]]) -> set[str]:
    """Fill `groups`; return the names that loops in `body` carry, which then belong to those and not to outer ones."""
    claimed: set[str] = set()
    for node in body:
        if isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
            inner = _visit(node.body, [*outer, node], groups)
            scan = _Scan()
            scan.written |= bound_in(node.target) if not isinstance(node, ast.While) else set()
            scan.statements(node.body)
            carried = {name for name in scan.read_first & scan.assigned if not _is_counter(name, node)} - inner
            groups.setdefault(node.lineno, set()).update(carried)
            claimed |= inner | carried
        else:
            for child in _bodies(node):
                claimed |= _visit(child, outer, groups)
        _slice_accumulation(node, outer, groups)
    return claimed


def _slice_accumulation(node: ast.stmt, loops: list[Loop], groups: dict[int, set[str]]) -> None:
    if not (isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Subscript)):
        return
    base = node.target.value
    chosen_by = names_in(node.target.slice)
    for loop in reversed(loops):
        moving = _moving(loop)
        if isinstance(base, ast.Name) and not chosen_by & moving:
            groups.setdefault(loop.lineno, set()).add(base.id)
            return


def _moving(loop: Loop) -> set[str]:
    """Return the loop's index and the names that are computed from it in its body."""
    moving = bound_in(loop.target) if not isinstance(loop, ast.While) else set()
    for node in ast.walk(loop):
        if isinstance(node, ast.Assign) and moving & names_in(node.value):
            moving |= bound_in(*node.targets)
    return moving


def _is_counter(name: str, loop: Loop) -> bool:
    """Whether every assignment in the loop only adds a number to `name`."""
    found = False
    for node in ast.walk(loop):
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and node.target.id == name:
            found = True
            if any(isinstance(part, (ast.Call, ast.Subscript, ast.BinOp)) for part in ast.walk(node.value)):
                return False
            if not isinstance(node.value, ast.Constant):
                return False
        elif isinstance(node, ast.Assign) and name in bound_in(*node.targets):
            return False
    return found


def _bodies(node: ast.stmt) -> Iterator[list[ast.stmt]]:
    for key in ("body", "orelse", "finalbody"):
        child = getattr(node, key, None)
        if isinstance(child, list) and not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield child
    for handler in getattr(node, "handlers", []):
        yield handler.body
