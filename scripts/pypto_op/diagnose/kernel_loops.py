"""What the text of a kernel's file tells about a line: which loop it stands in, and who calls its function."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeGuard


@dataclass(frozen=True)
class Loop:
    """A `pypto.loop`."""

    index: str  # name of its index
    name: str  # its own name, which pypto's graphs carry
    # first, last: lines
    first: int
    last: int
    around: tuple[str, ...]  # indices of the loops that hold it, in the same function


class KernelLoops:
    """The loops and calls of a kernel's file.

    Args:
        text: of the file; it must parse.
    """

    def __init__(self, text: str) -> None:
        self._tree = ast.parse(text)
        self.loops: list[Loop] = []  # every `pypto.loop`
        self._find(self._tree, ())
        nodes = list(ast.walk(self._tree))
        self._functions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
        self._calls = [node for node in nodes if isinstance(node, ast.Call)]
        self.writes: list[int] = []  # lines of the calls of `pypto.assemble`
        self._written: dict[int, set[str]] = {}
        for call in self._calls:
            if isinstance(call.func, ast.Attribute) and call.func.attr == "assemble":
                self.writes.append(call.lineno)
                self._written[call.lineno] = {one.id for one in call.args[2:] if isinstance(one, ast.Name)}

    def loop(self, index: str) -> Loop | None:
        """Return the loop with this index, None where there is none."""
        return next((loop for loop in self.loops if loop.index == index), None)

    def of_graph(self, graph: str) -> Loop | None:
        """Return the loop that a graph was recorded in, such as WRITE of TENSOR_WRITE_Unroll1_PATH0_hiddenfunc0_17."""
        found = [loop for loop in self.loops if loop.name and graph.startswith(f"TENSOR_{loop.name}_")]
        return max(found, key=lambda loop: len(loop.name), default=None)

    def writes_of_graph(self, graph: str, name: str = "") -> list[int]:
        """Return the lines of `pypto.assemble` in the loop that a graph was recorded in; all where none stands there.

        Args:
            name: only writes to this tensor, where some call it so.
        """
        loop = self.of_graph(graph)
        within = [line for line in self.writes if loop is not None and loop.first <= line <= loop.last]
        named = [line for line in within or self.writes if name and name in self._written.get(line, ())]
        return named or within or self.writes

    def writes_to(self, name: str) -> list[int]:
        """Return the lines of `pypto.assemble` that name a tensor."""
        return [line for line in self.writes if name in self._written[line]]

    def write_of_state(self, name: str, graph: str, near: int | None) -> int | None:
        """Return the line that writes a state (`name[:] = ...`) in the loop of a graph: the next one from line `near` on.

        `near` where no line writes it there; a helper may call it by another name.
        """
        loop = self.of_graph(graph)
        lines = [
            node.lineno
            for node in ast.walk(self._tree)
            if isinstance(node, ast.Assign) and any(_part_of(target, name) for target in node.targets)
            if loop is None or loop.first <= node.lineno <= loop.last
        ]
        return next((line for line in sorted(lines) if near is None or line >= near), near)

    def holding(self, indices: Sequence[str], graph: str) -> list[Loop]:
        """Return those of the loops `indices` that hold what a graph records, innermost first; all where it is unknown."""
        wanted = [loop for index in indices if (loop := self.loop(index)) is not None]
        own = self.of_graph(graph)
        around = {own.index, *own.around} if own is not None else set()
        kept = [loop for loop in wanted if loop.index in around]
        if own is not None and not kept:
            kept = [own]
        return sorted(kept or wanted, key=lambda loop: -loop.first)

    def callers(self, line: int, graph: str) -> list[int]:
        """Return the lines that call the function which holds `line`, those within the loop of a graph where there are some.

        A line stands as often as it calls.

        Args:
            graph: name of a function of pypto, such as TENSOR_WRITE_Unroll1_PATH0_hiddenfunc0_17, with the loop's name in it.
        """
        own = self.function_of(line)
        calls = [call.lineno for call in self._calls if isinstance(call.func, ast.Name) and call.func.id == own]
        within = self.of_graph(graph)
        near = [call for call in calls if within is not None and within.first <= call <= within.last]
        return sorted(near or calls)

    def function_of(self, line: int) -> str:
        """Return the name of the innermost function that holds a line, "" for none."""
        holder = self._holder(line)
        return holder.name if holder is not None else ""

    def write_in(self, loop: Loop) -> int:
        """Return the line of the one `pypto.assemble` of a loop, else of the file; the loop's line where there are several."""
        within = [line for line in self.writes if loop.first <= line <= loop.last]
        calls = within or self.writes
        return calls[0] if len(calls) == 1 else loop.first

    def written_where_read(self) -> int:
        """Return the line of the first `pypto.assemble` into a tensor that its innermost loop uses elsewhere, 0 for none."""
        for line in self.writes:
            around = [loop for loop in self.loops if loop.first <= line <= loop.last]
            inner = max(around, key=lambda loop: loop.first, default=None)
            used = [
                node.id
                for node in ast.walk(self._tree)
                if isinstance(node, ast.Name) and inner is not None and inner.first < node.lineno <= inner.last
                if node.lineno not in self.writes
            ]
            if self._written[line] & set(used):
                return line
        return 0

    def moved_view(self) -> int:
        """Return the line of the one view whose offset holds a number that is not 0, 0 where there are none or several."""
        lines = []
        for call in (node for node in ast.walk(self._tree) if is_view(node)):
            offset = offset_of(call)
            parts = offset.elts if isinstance(offset, (ast.List, ast.Tuple)) else []
            if any(isinstance(part, ast.Constant) and part.value for part in parts):
                lines.append(call.lineno)
        return lines[0] if len(lines) == 1 else 0

    def placed_by_caller(self, line: int) -> bool:
        """Say whether a view on `line` takes its offset from parameters of its function."""
        for function in self._functions:
            names = {one.arg for one in function.args.args}
            for call in (node for node in ast.walk(function) if is_view(node) and node.lineno <= line <= (node.end_lineno or 0)):
                offset = offset_of(call)
                used = {node.id for node in ast.walk(offset) if isinstance(node, ast.Name)} if offset is not None else set()
                if used & names:
                    return True
        return False

    def order_of(self, index: str) -> int:
        """Return the line that computes a place from a loop's index, else the loop's; 0 where it carries no state.

        Of several loops that do, one may well go against another: a backward walk over what a forward one left.
        """
        loop = self.loop(index)
        assigned = [node for node in ast.walk(self._tree) if isinstance(node, ast.Assign)]
        stored = [node.lineno for node in assigned if any(isinstance(target, ast.Subscript) for target in node.targets)]
        around = [[one for one in self.loops if one.first < line <= one.last] for line in stored]
        carrying = {max(one.first for one in loops) for loops in around if loops}
        if loop is None or loop.first not in carrying:
            return 0
        if any(other.first in carrying and not other.first <= loop.first <= other.last for other in self.loops if other != loop):
            return 0
        for node in assigned:
            names = {one.id for one in ast.walk(node.value) if isinstance(one, ast.Name)}
            if loop.first < node.lineno <= loop.last and index in names:
                return node.lineno
        return loop.first

    def handed_view(self, line: int, graph: str) -> int:
        """Return the line of the first call that hands a view on `line` its place, 0 where the view itself computes some of it.

        Args:
            line: of the view.
            graph: name of a function of pypto; calls in its loop go first.
        """
        for function in self._functions:
            names = {one.arg for one in function.args.args}
            for call in (node for node in ast.walk(function) if is_view(node) and node.lineno <= line <= (node.end_lineno or 0)):
                given = [offset_of(call), *(word.value for word in call.keywords if word.arg == "valid_shape")]
                parts = [part for one in given if isinstance(one, (ast.List, ast.Tuple)) for part in one.elts]
                plain = all(isinstance(part, ast.Constant) or isinstance(part, ast.Name) and part.id in names for part in parts)
                if parts and plain:
                    return next(iter(self.callers(line, graph)), 0)
        return 0

    def _holders(self, line: int) -> list[ast.FunctionDef]:
        """Return the functions that hold a line, innermost first."""
        held = [node for node in self._functions if node.lineno <= line <= (node.end_lineno or 0)]
        return sorted(held, key=lambda node: -node.lineno)

    def _holder(self, line: int) -> ast.FunctionDef | None:
        return next(iter(self._holders(line)), None)

    def _find(self, node: ast.AST, around: tuple[str, ...]) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef):
                self._find(child, ())
            elif isinstance(child, ast.For) and _is_loop(child):
                loop = _loop(child, around)
                self.loops.append(loop)
                self._find(child, (*around, loop.index))
            else:
                self._find(child, around)


def _part_of(target: ast.expr, name: str) -> bool:
    return isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name) and target.value.id == name


def is_view(node: ast.AST) -> TypeGuard[ast.Call]:
    """Say whether a node is a call of `pypto.view`."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "view"


def offset_of(view: ast.Call) -> ast.expr | None:
    """Return the offset that a view is given, None for none."""
    given = next((word.value for word in view.keywords if word.arg == "offsets"), None)
    return given if given is not None else view.args[2] if len(view.args) > 2 else None


def _is_loop(node: ast.For) -> bool:
    call = node.iter
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in ("loop", "loop_unroll")


def _loop(node: ast.For, around: tuple[str, ...]) -> Loop:
    assert isinstance(node.iter, ast.Call)
    words = {k.arg: str(k.value.value) for k in node.iter.keywords if isinstance(k.value, ast.Constant)}
    target = node.target.id if isinstance(node.target, ast.Name) else ""
    return Loop(words.get("idx_name", target), words.get("name", ""), node.lineno, node.end_lineno or node.lineno, around)
