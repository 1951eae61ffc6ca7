"""Parsing by statement: libcst reads only the statements that it has not seen before.

`ast` says in about 2 ms for 500 lines whether a file is Python and where each statement lies; libcst needs ten times
that. So a file is cut into its statements (long functions and loops again into theirs), every statement's tree is
kept under its text, and the trees are put together into one module. An edit then costs the statement it touched.
What was not seen before is parsed in one go: a call of the parser costs as much as a short statement.
"""

from __future__ import annotations

import ast
from collections import Counter, OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

from pypto_op_lint.cuts import Cut, Placed, SeenStatements
from pypto_op_lint.source import UnreadableSource

_CACHE_CHARACTERS = 24 * 1024 * 1024
"""Source text whose trees are kept; a tree takes roughly two hundred times its text."""
_CACHE_ENTRIES = 20_000
_CACHE_WHOLES = 5_000
_MAX_DEPTH = 100
"""Deeper nesting than this is refused: no kernel needs it, and recursive readers fall over it."""
_SHALLOW_CHARACTERS = 80
"""So short a text cannot nest that deep: each level takes a character at least."""

Statement = cst.SimpleStatementLine | cst.BaseCompoundStatement


@dataclass(eq=False)
class Parsed:
    """The tree of one piece of text, shared by every file that holds that text.

    Attributes:
        root: the statement libcst made of the text.
        indent: the indentation that its blocks do not spell out.
        statements: the statements of the piece.
        lines_before: lines that were put in front so that indented text parses.
        columns_before: columns that were cut off.
    """

    root: Statement
    indent: str
    statements: tuple[Statement, ...]
    lines_before: int
    columns_before: int
    _positions: dict[cst.CSTNode, tuple[int, int, int, int]] | None = field(default=None, repr=False)

    def position(self, node: cst.CSTNode) -> tuple[int, int, int, int]:
        """Return (line, column, end line, end column) of `node` in the piece: lines from 0, columns from 0."""
        if self._positions is None:
            alone = cst.Module(body=[self.root], default_indent=self.indent)
            ranges = MetadataWrapper(alone, unsafe_skip_copy=True).resolve(PositionProvider)
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
        self.seen = SeenStatements()

    def __len__(self) -> int:
        return len(self._entries)

    def take(self, cuts: Sequence[Cut]) -> list[Parsed]:
        """Return a tree for each part of one file, none of them twice.

        Raises:
            UnreadableSource: a part is nested too deeply, or libcst refuses it.
        """
        occurrence: Counter[tuple[str, int]] = Counter()
        places: list[int] = []
        missing: list[Cut] = []
        for cut in cuts:
            key = cut.key
            places.append(occurrence[key])
            occurrence[key] += 1
            if key not in self._entries:
                _check_depth(cut)
            cut.nodes = ()
            if places[-1] >= len(self._entries.get(key, ())):
                missing.append(cut)
        self._add(missing)
        for key in occurrence:
            self._entries.move_to_end(key)
        found = [self._entries[cut.key][place] for cut, place in zip(cuts, places, strict=True)]
        self._evict()
        return found

    def _add(self, missing: list[Cut]) -> None:
        for cut, parsed in zip(missing, _parse(missing), strict=True):
            if cut.key not in self._entries:
                self._entries[cut.key] = []
                self._characters += len(cut.text)
            self._entries[cut.key].append(parsed)
        self.parsed_now += len(missing)

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
        self.seen.clear()
        self._characters = 0

    def _evict(self) -> None:
        while self._characters > self._limit or len(self._entries) > _CACHE_ENTRIES:
            (text, _), _ = self._entries.popitem(last=False)
            self._characters -= len(text)


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
    lines = text.split("\n")
    try:
        mostly_seen = cache.seen.cut_what_is_new(lines)
        if mostly_seen is not None:
            with suppress(UnreadableSource):  # told below, with the line it has in the file
                return _put_together(mostly_seen, cache)
        return _put_together(cache.seen.cut(lines), cache)
    except SyntaxError as error:
        message = error.msg or "invalid syntax"
        raise UnreadableSource(f"is not valid Python: {message}", line=error.lineno, column=error.offset) from error
    except (RecursionError, MemoryError) as error:
        raise UnreadableSource("is nested too deeply to be read") from error
    except ValueError as error:
        raise UnreadableSource(f"is not valid Python: {error}") from error


def _put_together(placed: list[Placed], cache: StatementCache) -> ParsedFile:
    """Have the parts parsed that were not, and make one tree of all."""
    parsed = iter(cache.take(list(_flat([one.cut for one in placed]))))
    pieces: dict[int, Piece] = {}

    def assemble(cuts: list[Cut], lines_down: int) -> list[Statement]:
        made: list[Statement] = []
        for cut in cuts:
            piece = Piece(next(parsed), cut.first_line + lines_down)
            statements: Sequence[Statement] = piece.parsed.statements
            if cut.body is not None:
                (head,) = statements
                whole = cache.whole(head, assemble(cut.body, lines_down))
                piece.original[id(whole)] = head
                statements = (whole,)
            for statement in statements:
                pieces[id(statement)] = piece
            made.extend(statements)
        return made

    body = [statement for one in placed for statement in assemble([one.cut], one.lines_down)]
    return ParsedFile(body, pieces)


def _flat(cuts: list[Cut]) -> Iterator[Cut]:
    for cut in cuts:
        yield cut
        yield from _flat(cut.body or [])


def _check_depth(cut: Cut) -> None:
    """Refuse trees that would exhaust a recursive reader's stack (libcst's own is native: it would crash)."""
    if len(cut.text) <= _SHALLOW_CHARACTERS:
        return
    level: list[ast.AST] = list(cut.nodes)
    for _ in range(_MAX_DEPTH):
        fields = [value for node in level for value in vars(node).values()]
        lists = [value for value in fields if value.__class__ is list]
        level = [child for values in (fields, *lists) for child in values if isinstance(child, ast.AST)]
        if not level:
            return
    raise UnreadableSource(f"nests more than {_MAX_DEPTH} levels deep", line=cut.first_line)


def _parse(cuts: Sequence[Cut]) -> list[Parsed]:
    """Parse all of `cuts` at once; one by one when that fails, so that a fault is told with its line."""
    try:
        with _unvalidated():
            module = cst.parse_module("\n".join(cut.source for cut in cuts))
        if len(module.body) == len(cuts):
            return [_parsed(cut, root, module.default_indent) for cut, root in zip(cuts, module.body, strict=True)]
        line, column, message = 1, 0, "its statements cannot be told apart"
    except cst.ParserSyntaxError as error:
        line, column, message = error.raw_line, error.raw_column, error.message
    if len(cuts) > 1:
        return [parsed for cut in cuts for parsed in _parse([cut])]
    line += cuts[0].first_line - 1 - cuts[0].lines_before
    raise UnreadableSource(f"is not valid Python: {message}", line=line, column=column + 1 + cuts[0].columns_before)


_validate = cst.CSTNode.__post_init__


@contextmanager
def _unvalidated() -> Iterator[None]:
    """Let libcst make nodes without checking each: what its own parser makes is valid, and the checks cost a sixth of a parse."""
    cst.CSTNode.__post_init__ = lambda self: None  # type: ignore[method-assign]
    try:
        yield
    finally:
        cst.CSTNode.__post_init__ = _validate  # type: ignore[method-assign]


def _parsed(cut: Cut, root: Statement, indent: str) -> Parsed:
    statements = (root,)
    if cut.lines_before:
        assert isinstance(root, cst.If)
        statements = tuple(root.body.body)  # type: ignore[assignment]
    return Parsed(root, indent, statements, cut.lines_before, cut.columns_before)
