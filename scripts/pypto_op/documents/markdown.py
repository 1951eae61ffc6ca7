"""The structure of a Markdown document: headings and sections, tables, code, checklists. `markdown-it` reads the blocks.

What stands in code or in a comment is never taken for a heading, a table or an item of a list.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock
    from markdown_it.token import Token

PYTHON_FENCES = {"", "python", "py", "python3", "py3", "pycon", "ipython", "ipython3", "pypto"}
_FRONT_MATTER = "---"
_COMMENT = re.compile(r"(?P<code>(?P<mark>(?<!`)`+)(?!`).*?(?<!`)(?P=mark)(?!`))|<!--.*?-->", re.DOTALL)
_OPEN_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_ITEM = re.compile(r"^[ \t]*(?:[-*+]|\d+[.)])[ \t]+\[(?P<mark>.)\ufe0f?\][ \t]*(?P<text>.*)$")


@dataclass(frozen=True)
class Fence:
    """A block of code, fenced or indented."""

    language: str  # the first word behind the opening fence; "" for none
    text: str  # the code
    line: int  # the line of its first line of code, counted from 1
    columns: int = 0  # how many columns were cut off in front of its lines

    @property
    def is_python(self) -> bool:
        """Whether the fence says so, or says nothing."""
        return self.language.lower() in PYTHON_FENCES


@dataclass(frozen=True)
class ChecklistItem:
    """`- [x] text`."""

    mark: str
    text: str
    line: int

    @property
    def ticked(self) -> bool:
        """Whether the box is ticked."""
        return self.mark in "xX✓✔✅√"


@dataclass(frozen=True)
class Table:
    """A pipe table."""

    header: tuple[str, ...]  # the column titles
    rows: tuple[tuple[str, ...], ...]  # the cells of each row, as many as there are columns
    line: int  # the header's line, counted from 1; row i stands on line + 2 + i

    def column(self, *words: str) -> int | None:
        """Return the first column whose title contains one of `words`, whatever the case, or None."""
        for number, title in enumerate(self.header):
            if any(word.casefold() in title.casefold() for word in words):
                return number
        return None

    @property
    def numbered(self) -> list[tuple[int, tuple[str, ...]]]:
        """The rows, each with its line."""
        return list(enumerate(self.rows, self.line + 2))


@dataclass(frozen=True)
class Section:
    """A heading with everything below it, up to the next heading of the same or a higher level."""

    title: str  # the heading's text
    level: int  # 1 to 6
    line: int  # the heading's line in the file, counted from 1
    text: str  # what follows the heading
    document: Markdown = field(repr=False, compare=False)  # where it stands

    @property
    def prose(self) -> list[tuple[int, str]]:
        """Its lines outside code and comments, each with its line in the file."""
        return [(number, line) for number, line in self.document.prose if self._has(number)]

    @property
    def tables(self) -> list[Table]:
        """The tables in it; their lines are those of the file."""
        return [table for table in self.document.tables if self._has(table.line)]

    def _has(self, line: int) -> bool:
        return self.line < line <= self.line + self.text.count("\n") + 1

    @property
    def checklist(self) -> list[ChecklistItem]:
        """Its items with a box."""
        return [ChecklistItem(m["mark"], m["text"].strip(), number) for number, text in self.prose if (m := _ITEM.match(text))]


@dataclass(eq=False)
class Markdown:
    """A document, or a part of one."""

    text: str  # its words, without front matter
    first_line: int = 1  # the line of the file on which `text` begins

    @cached_property
    def _lines(self) -> list[str]:
        return self.text.split("\n")

    @cached_property
    def _tokens(self) -> list[Token]:
        return _blocks(self.text)

    @cached_property
    def _shown(self) -> list[str | None]:
        """Each line without its comments; None inside code."""
        shown: list[str | None] = list(self._lines)
        for token in self._tokens:
            first, end = token.map or (0, 0)
            if token.type in ("fence", "code_block"):
                shown[first:end] = [None] * (end - first)
            elif token.type in ("inline", "html_block") and "<!--" in token.content:
                # Cells of one row share their line, so a line may have been shortened before.
                text = "\n".join(line or "" for line in shown[first:end])
                shown[first:end] = _without_comments(text, open_too=token.type == "html_block").split("\n")
        return shown

    @property
    def prose(self) -> list[tuple[int, str]]:
        """Lines outside code, without comments, each with its line in the file."""
        return [(number, line) for number, line in enumerate(self._shown, self.first_line) if line is not None]

    @property
    def visible(self) -> str:
        """The text with code and comments emptied, line for line."""
        return "\n".join(line or "" for line in self._shown)

    @cached_property
    def fences(self) -> list[Fence]:
        """The blocks of code."""
        return [self._fence(token) for token in self._tokens if token.type in ("fence", "code_block")]

    def _fence(self, token: Token) -> Fence:
        words = token.info.strip().lstrip("{.").split()
        text = token.content.removesuffix("\n")
        first = (token.map or (0, 0))[0] + (token.type == "fence")
        raw, code = "".join(self._lines[first : first + 1]).rstrip("\r"), text.split("\n")[0]
        columns = len(raw) - len(code) if code and raw.endswith(code) else 0
        return Fence(re.split(r"[,{:}]", words[0])[0] if words else "", text, first + self.first_line, columns)

    @cached_property
    def tables(self) -> list[Table]:
        """The pipe tables; rows are cut or filled up to the header's width, and a line without a bar ends a table."""
        starts = [at for at, token in enumerate(self._tokens) if token.type == "table_open"]
        return [self._table(at) for at in starts]

    def _table(self, start: int) -> Table:
        rows: dict[int, list[str]] = {}
        for token in self._tokens[start:]:
            if token.type == "table_close":
                break
            if token.type == "inline" and token.map:
                rows.setdefault(token.map[0], []).append(_without_comments(token.content).strip())
        header, *body = [(line, tuple(cells)) for line, cells in rows.items()]
        ended = next((at for at, (line, _) in enumerate(body) if "|" not in self._lines[line]), len(body))
        return Table(header[1], tuple(cells for _, cells in body[:ended]), header[0] + self.first_line)

    @cached_property
    def sections(self) -> list[Section]:
        """Every section, in order; a section contains its subsections. A quotation and a list have no headings."""
        heads = []
        for token, inline in zip(self._tokens, self._tokens[1:], strict=False):
            if token.type == "heading_open" and token.level == 0 and token.map:
                heads.append((token.map[0], len(token.markup), _without_comments(inline.content).strip()))
        heads = [head for head in heads if head[2]]
        found = []
        for place, (start, level, title) in enumerate(heads):
            end = next((at for at, other, _ in heads[place + 1 :] if other <= level), len(self._lines))
            found.append(Section(title, level, start + self.first_line, "\n".join(self._lines[start + 1 : end]), self))
        return found

    def section(self, *words: str) -> Section | None:
        """Return the first section whose title contains one of `words`, whatever the case."""
        wanted = [word.casefold() for word in words]
        return next((s for s in self.sections if any(word in s.title.casefold() for word in wanted)), None)


def front_matter_lines(text: str) -> int:
    """Return how many lines the front matter takes, both `---` included; 0 where there is none, or it has no end."""
    lines = text.split("\n")
    if lines[0].rstrip() != _FRONT_MATTER:
        return 0
    return next((number for number, line in enumerate(lines[1:], 2) if line.rstrip() == _FRONT_MATTER), 0)


def sections(text: str, *, first_line: int = 1) -> list[Section]:
    """Return every section of `text`, which begins on `first_line` of its file; see `Markdown.sections`."""
    return Markdown(text, first_line).sections


def tables(text: str) -> list[Table]:
    """Return every table of `text`; see `Markdown.tables`."""
    return Markdown(text).tables


def find_section(found: Sequence[Section], words: Sequence[str]) -> Section | None:
    """Return the first section whose title contains one of `words`, whatever the case; an earlier word goes before a later."""
    for word in words:
        for section in found:
            if word.casefold() in section.title.casefold():
                return section
    return None


def _without_comments(text: str, *, open_too: bool = False) -> str:
    """Drop comments, but not their line ends; in a block, one that is never closed ends with the block."""

    def emptied(match: re.Match[str]) -> str:
        return match[0] if match.groupdict().get("code") else "\n" * match[0].count("\n")

    return (_OPEN_COMMENT if open_too else _COMMENT).sub(emptied, text)


@lru_cache(maxsize=8)
def _blocks(text: str) -> list[Token]:
    """Return the blocks of a text; one after another, several questions are put to the same one."""
    # Where a carriage return stands alone, markdown-it begins a line and we do not.
    return _parser().parse(text.replace("\r\n", "\n").replace("\r", " "))


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    """Return CommonMark with tables, without `Title` above `---`, which people write for a rule, and without words' marks.

    It is imported here: the linter reads kernels more often than documents.
    """
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark").enable("table").disable(["inline", "lheading"])
    parser.block.ruler.at("html_block", _comment, {"alt": ["paragraph", "blockquote"]})
    return parser


def _comment(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Read a comment. Other HTML is prose: `<the plan>` alone on a line is a placeholder, and no block up to a blank line."""
    from markdown_it.rules_block import html_block

    return state.src.startswith("<!--", state.bMarks[start] + state.tShift[start]) and html_block(state, start, end, silent)
