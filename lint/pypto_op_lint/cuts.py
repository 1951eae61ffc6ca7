"""Cutting a file into the parts that are parsed by themselves: its statements, those of long blocks again into theirs.

Where the parts lie, `ast` says. What it said is kept with the lines of each statement of the module: in the next version
of a file, lines that were a whole statement before are one again, and `ast` is asked for what lies between them only.
"""

from __future__ import annotations

import ast
import warnings
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

_SPLIT_FROM_LINES = 8
_BLANK = " \t\f"
"""What Python takes for white space in front of a line."""
_KEPT_LINES = 200_000
_KEPT_ALIKE = 32
"""So many statements are kept that begin with the same line."""

_Compound = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.For, ast.While, ast.With, ast.If)
_REFUSED = (SyntaxError, ValueError, RecursionError, MemoryError)


@dataclass(eq=False)
class Cut:
    """A part of a file that is parsed by itself.

    Attributes:
        text: its lines.
        indent: columns in front of its statements.
        first_line: its first line, from 1, in the text that `ast` was given.
        nodes: what `ast` made of it, until somebody has looked how deep it nests.
        body: for the header of a block whose statements are parts of their own, these; None for anything else.
    """

    text: str
    indent: int
    first_line: int
    nodes: Sequence[ast.AST]
    body: list[Cut] | None = None

    def __post_init__(self) -> None:
        """Make the key that its tree is kept under."""
        self.key = (self.text, self.indent)

    @property
    def lines_before(self) -> int:
        """Lines that must stand in front so that indented text parses."""
        return int(self.indent > 0 and "\n" in self.text)

    @property
    def columns_before(self) -> int:
        """Columns that must be cut off so that indented text parses."""
        return self.indent if not self.lines_before else 0

    @property
    def source(self) -> str:
        """The text as it parses outside its block: one statement."""
        return "if 1:\n" + self.text if self.lines_before else self.text[self.columns_before :]


@dataclass(eq=False)
class Placed:
    """A statement of the module, and how many lines further down it stands than where it was cut."""

    cut: Cut
    lines_down: int


@dataclass(eq=False)
class _Seen:
    lines: list[str]
    cut: Cut


class SeenStatements:
    """Statements of modules by their lines, least recently used dropped first."""

    def __init__(self) -> None:
        """Start with nothing seen."""
        self._by_first_line: OrderedDict[str, list[_Seen]] = OrderedDict()
        self._lines = 0

    def clear(self) -> None:
        """Forget everything."""
        self._by_first_line.clear()
        self._lines = 0

    def cut(self, lines: list[str]) -> list[Placed]:
        """Cut a file by asking `ast` about all of it.

        Raises:
            SyntaxError, ValueError, RecursionError, MemoryError: as `ast.parse` does.
        """
        return self._learn(lines, 0, len(lines))

    def cut_what_is_new(self, lines: list[str]) -> list[Placed] | None:
        """Cut a file of which most was seen; None when what is new makes no sense by itself.

        Every part was, or is here, read to its end by `ast` alone, so that the reader stands at the begin of a statement
        of the module after each: the file is its parts, one after the other.
        """
        placed: list[Placed] = []
        line, new_from = 0, None
        while line < len(lines):
            text = lines[line]
            if new_from is None and _says_nothing(text):
                line += 1
                continue
            seen = self._seen_at(lines, line)
            if seen is None:
                new_from = line if new_from is None else new_from
                line += 1
                continue
            if new_from is not None and not self._add_new(placed, lines, new_from, line):
                return None
            new_from = None
            placed.append(Placed(seen.cut, line + 1 - seen.cut.first_line))
            line += len(seen.lines)
        if new_from is not None and (not placed or not self._add_new(placed, lines, new_from, len(lines))):
            return None
        return placed

    def _add_new(self, placed: list[Placed], lines: list[str], start: int, end: int) -> bool:
        if lines[end - 1].endswith("\\"):
            return False
        try:
            placed.extend(self._learn(lines, start, end))
        except _REFUSED:
            return False
        return True

    def _seen_at(self, lines: list[str], line: int) -> _Seen | None:
        """Return the longest statement that was seen and stands at `line`, unless its block goes on behind it."""
        found: _Seen | None = None
        for seen in self._by_first_line.get(lines[line], ()):
            longer = found is None or len(seen.lines) > len(found.lines)
            if longer and lines[line : line + len(seen.lines)] == seen.lines:
                found = seen
        if found is None:
            return None
        after = line + len(found.lines)
        while after < len(lines) and _says_nothing(lines[after]):
            after += 1
        if after < len(lines) and lines[after][0] in _BLANK:
            return None
        self._by_first_line.move_to_end(lines[line])
        return found

    def _learn(self, lines: list[str], start: int, end: int) -> list[Placed]:
        part = lines[start:end]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            tree = ast.parse("\n".join(part))
        placed = []
        for cut, last in _cut(part, tree.body):
            placed.append(Placed(cut, start))
            self._keep(part[cut.first_line - 1 : last], cut)
        return placed

    def _keep(self, lines: list[str], cut: Cut) -> None:
        if lines[-1].endswith("\\"):
            return  # what follows may belong to it
        alike = self._by_first_line.setdefault(lines[0], [])
        if any(seen.lines == lines for seen in alike):
            return
        alike.append(_Seen(lines, cut))
        self._lines += len(lines)
        if len(alike) > _KEPT_ALIKE:
            self._lines -= len(alike.pop(0).lines)
        while self._lines > _KEPT_LINES and len(self._by_first_line) > 1:
            _, dropped = self._by_first_line.popitem(last=False)
            self._lines -= sum(len(seen.lines) for seen in dropped)


def _says_nothing(line: str) -> bool:
    """Whether a line is empty or a comment."""
    text = line.lstrip(_BLANK)
    return not text or text[0] == "#"


def _cut(lines: list[str], body: list[ast.stmt]) -> list[tuple[Cut, int]]:
    """Return the statements of a block, those that share a line as one, each with its last line."""
    made: list[tuple[Cut, int]] = []
    index = 0
    while index < len(body):
        statement = body[index]
        first, last = _first_line(statement), statement.end_lineno or statement.lineno
        end = index + 1
        while end < len(body) and _first_line(body[end]) <= last:
            last = max(last, body[end].end_lineno or 0)
            end += 1
        if end == index + 1 and isinstance(statement, _Compound) and _splits(lines, statement, first, last):
            made.append((_block(lines, statement, first), last))
        else:
            # Python lets an empty line follow a backslash; libcst refuses the backslash.
            text = "\n".join(lines[first - 1 : last]).removesuffix("\\")
            made.append((Cut(text, statement.col_offset, first, body[index:end]), last))
        index = end
    return made


def _splits(lines: list[str], statement: ast.stmt, first: int, last: int) -> bool:
    if last - first < _SPLIT_FROM_LINES or getattr(statement, "orelse", None):
        return False
    inner = statement.body[0]  # type: ignore[attr-defined]
    # A body on the header's own last line cannot be cut off from it.
    return lines[_first_line(inner) - 1][: inner.col_offset].isspace() or _first_line(inner) < inner.lineno


def _block(lines: list[str], statement: ast.stmt, first: int) -> Cut:
    body: list[ast.stmt] = statement.body  # type: ignore[attr-defined]
    header = "\n".join(lines[first - 1 : _first_line(body[0]) - 1])
    filler = f"{header}\n{' ' * (statement.col_offset + 1)}pass"
    inner = [cut for cut, _ in _cut(lines, body)]
    return Cut(filler, statement.col_offset, first, getattr(statement, "decorator_list", ()), inner)


def _first_line(statement: ast.stmt) -> int:
    decorators = getattr(statement, "decorator_list", None)
    return min([statement.lineno, *(d.lineno for d in decorators)]) if decorators else statement.lineno
