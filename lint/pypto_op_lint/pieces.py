"""Parsing by statement: libcst reads only the statements that it has not seen before.

`ast` says in about 2 ms for 500 lines whether a file is Python and where each statement lies; libcst needs ten times
that. So a file is cut into its statements (long functions and loops again into theirs), every statement's tree is
kept under its text, and the trees are put together into one module. An edit then costs the statement it touched.
"""

from __future__ import annotations

import ast
import warnings
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

from pypto_op_lint.source import UnreadableSource

_SPLIT_FROM_LINES = 8
_CACHE_CHARACTERS = 24 * 1024 * 1024
"""Source text whose trees are kept; a tree takes roughly two hundred times its text."""
_CACHE_ENTRIES = 20_000
_CACHE_WHOLES = 5_000
_MAX_DEPTH = 100
"""Deeper nesting than this is refused: no kernel needs it, and recursive readers fall over it."""

_Compound = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.For | ast.While | ast.With | ast.If
_Block = cst.FunctionDef | cst.ClassDef | cst.For | cst.While | cst.With | cst.If
Statement = cst.SimpleStatementLine | cst.BaseCompoundStatement


@dataclass(eq=False)
class Parsed:
    """The tree of one piece of text, shared by every file that holds that text.

    Attributes:
        module: the module libcst made of the text.
        statements: the statements of the piece.
        lines_before: lines that were put in front so that indented text parses.
        columns_before: columns that were cut off.
    """

    module: cst.Module
    statements: tuple[Statement, ...]
    lines_before: int
    columns_before: int
    _positions: dict[cst.CSTNode, tuple[int, int, int, int]] | None = field(default=None, repr=False)

    def position(self, node: cst.CSTNode) -> tuple[int, int, int, int]:
        """Return (line, column, end line, end column) of `node` in the piece: lines from 0, columns from 0."""
        if self._positions is None:
            ranges = MetadataWrapper(self.module, unsafe_skip_copy=True).resolve(PositionProvider)
            down, right = 1 + self.lines_before, self.columns_before
            self._positions = {
                key: (
                    r.start.line - down,
                    r.start.column + right,
                    r.end.line - down,
                    r.end.column + right,
                )
                for key, r in ranges.items()
            }
        return self._positions[node]


@dataclass(eq=False)
class Piece:
    """A parsed piece at its place in one file."""

    parsed: Parsed
    first_line: int
    original: dict[int, cst.CSTNode] = field(default_factory=dict)
    """For a header whose body was put in: id of the new node -> the node that was parsed."""

    def position(self, node: cst.CSTNode) -> tuple[int, int, int, int]:
        """Return (line, column, end line, end column) in the file: lines from 1, columns from 0."""
        line, column, end_line, end_column = self.parsed.position(self.original.get(id(node), node))
        return self.first_line + line, column, self.first_line + end_line, end_column


@dataclass(eq=False)
class ParsedFile:
    """A whole file: one tree, and for the root of each piece where it came from."""

    body: list[Statement]
    pieces: dict[int, Piece]


class StatementCache:
    """Trees of statements by their text, least recently used dropped first."""

    def __init__(self, characters: int = _CACHE_CHARACTERS) -> None:
        """Keep trees of up to `characters` characters of source."""
        self._limit = characters
        self._entries: OrderedDict[tuple[str, int], list[Parsed]] = OrderedDict()
        self._wholes: OrderedDict[tuple[int, ...], tuple[Statement, Statement]] = OrderedDict()
        self._characters = 0
        self.parsed_now = 0

    def __len__(self) -> int:
        return len(self._entries)

    def holds(self, text: str, indent: int) -> bool:
        """Whether a tree of `text` is kept."""
        return (text, indent) in self._entries

    def take(self, text: str, indent: int, used: dict[tuple[str, int], int]) -> Parsed:
        """Return a tree of `text`; `used` counts per file, so that no tree occurs twice in one file."""
        key = (text, indent)
        copies = self._entries.get(key, [])
        index = used.get(key, 0)
        used[key] = index + 1
        if index == len(copies):
            copies.append(_parse(text, indent))
            self.parsed_now += 1
        if index == 0 and key in self._entries:
            self._entries.move_to_end(key)
        elif key not in self._entries:
            self._entries[key] = copies
            self._characters += len(text)
            self._evict(key)
        return copies[index]

    def whole(self, head: Statement, children: list[Statement]) -> Statement:
        """Return `head` with `children` for its body: the same object as long as both are the same objects."""
        key = (id(head), *map(id, children))
        kept = self._wholes.get(key)
        if kept is None:
            made = head.with_changes(body=cst.IndentedBlock(body=children))
            kept = self._wholes[key] = (head, made)  # holds what the ids in the key belong to
            if len(self._wholes) > _CACHE_WHOLES:
                self._wholes.popitem(last=False)
        else:
            self._wholes.move_to_end(key)
        return kept[1]

    def clear(self) -> None:
        """Forget everything."""
        self._entries.clear()
        self._wholes.clear()
        self._characters = 0

    def _evict(self, keep: tuple[str, int]) -> None:
        while self._characters > self._limit or len(self._entries) > _CACHE_ENTRIES:
            key = next(iter(self._entries))
            if key == keep:
                return
            del self._entries[key]
            self._characters -= len(key[0])


CACHE = StatementCache()
"""One cache for the process: the resident linter keeps it between writes."""


def parse_file(text: str, cache: StatementCache = CACHE) -> ParsedFile:
    """Parse the text of a Python file.

    Args:
        text: source with plain line feeds and without a byte order mark.
        cache: where the trees of statements are kept.

    Raises:
        UnreadableSource: Python refuses the text, or it is nested too deeply.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            tree = ast.parse(text)
        return _Assembler(text, cache).module(tree)
    except SyntaxError as error:
        message = error.msg or "invalid syntax"
        raise UnreadableSource(f"is not valid Python: {message}", line=error.lineno, column=error.offset) from error
    except (RecursionError, MemoryError) as error:
        raise UnreadableSource("is nested too deeply to be read") from error
    except ValueError as error:
        raise UnreadableSource(f"is not valid Python: {error}") from error
    except cst.ParserSyntaxError as error:
        raise UnreadableSource(
            f"is not valid Python: {error.message}", line=error.raw_line, column=error.raw_column + 1
        ) from error


class _Assembler:
    def __init__(self, text: str, cache: StatementCache) -> None:
        self._lines = text.split("\n")
        self._cache = cache
        self._used: dict[tuple[str, int], int] = {}
        self._pieces: dict[int, Piece] = {}

    def module(self, tree: ast.Module) -> ParsedFile:
        return ParsedFile(self._body(tree.body), self._pieces)

    def _body(self, body: list[ast.stmt]) -> list[Statement]:
        made: list[Statement] = []
        index = 0
        while index < len(body):
            first, last = _first_line(body[index]), body[index].end_lineno or body[index].lineno
            end = index + 1
            while end < len(body) and _first_line(body[end]) <= last:
                last = max(last, body[end].end_lineno or 0)
                end += 1
            statement = body[index]
            if end == index + 1 and self._splits(statement, first, last):
                made.append(self._block(statement, first))  # type: ignore[arg-type]
            else:
                made.extend(self._piece(first, last, body[index:end]))
            index = end
        return made

    def _splits(self, statement: ast.stmt, first: int, last: int) -> bool:
        if last - first < _SPLIT_FROM_LINES or not isinstance(
            statement,
            (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.For, ast.While, ast.With, ast.If),
        ):
            return False
        if getattr(statement, "orelse", None):
            return False
        # A body on the header's own last line cannot be cut off from it.
        return self._lines[_first_line(statement.body[0]) - 1][: statement.body[0].col_offset].isspace() or (
            _first_line(statement.body[0]) < statement.body[0].lineno
        )

    def _block(self, statement: _Compound, first: int) -> Statement:
        inside = statement.body[0]
        body_line = _first_line(inside)
        header = "\n".join(self._lines[first - 1 : body_line - 1])
        filler = f"{header}\n{' ' * (statement.col_offset + 1)}pass"
        depth_of = [*statement.decorator_list] if hasattr(statement, "decorator_list") else []
        piece = Piece(self._take(filler, statement.col_offset, depth_of), first)
        (head,) = piece.parsed.statements
        children = self._body(statement.body)
        whole = self._cache.whole(head, children)
        piece.original[id(whole)] = head
        self._pieces[id(whole)] = piece
        return whole

    def _take(self, text: str, indent: int, nodes: Sequence[ast.AST]) -> Parsed:
        if not self._cache.holds(text, indent):
            _check_depth(nodes)
        return self._cache.take(text, indent, self._used)

    def _piece(self, first: int, last: int, group: list[ast.stmt]) -> tuple[Statement, ...]:
        text = "\n".join(self._lines[first - 1 : last])
        piece = Piece(self._take(text, group[0].col_offset, group), first)
        for statement in piece.parsed.statements:
            self._pieces[id(statement)] = piece
        return piece.parsed.statements


def _check_depth(nodes: Sequence[ast.AST]) -> None:
    """Refuse trees that would exhaust a recursive reader's stack (libcst's own is native: it would crash)."""
    level: list[ast.AST] = list(nodes)
    for _ in range(_MAX_DEPTH):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return
    raise UnreadableSource(f"nests more than {_MAX_DEPTH} levels deep", line=getattr(nodes[0], "lineno", None))


def _parse(text: str, indent: int) -> Parsed:
    if not indent:
        module = cst.parse_module(text)
        return Parsed(module, tuple(module.body), 0, 0)
    if "\n" not in text:
        module = cst.parse_module(text[indent:])
        return Parsed(module, tuple(module.body), 0, indent)
    module = cst.parse_module("if 1:\n" + text)
    (outer,) = module.body
    assert isinstance(outer, cst.If)
    body = outer.body.body
    return Parsed(module, tuple(body), 1, 0)  # type: ignore[arg-type]


def _first_line(statement: ast.stmt) -> int:
    decorators = getattr(statement, "decorator_list", None)
    return min([statement.lineno, *(d.lineno for d in decorators)]) if decorators else statement.lineno
