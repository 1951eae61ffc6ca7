"""A page of test material: front matter, headings, and below each heading prose, `- key: value` lines and fenced blocks."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from markdown_it import MarkdownIt
from markdown_it.token import Token

_RULE = "---"


class PageError(ValueError):
    """A page that is not in order; says file:line and what is wrong there."""

    def __init__(self, path: Path, line: int, message: str) -> None:
        super().__init__(f"{path}:{line}: {message}")
        self.path, self.line = path, line


@dataclass(frozen=True)
class Block:
    """One fenced block. `line` is that of its opening fence, counted from 1; `words` is what stands behind the backticks."""

    line: int
    words: tuple[str, ...]
    lines: tuple[str, ...]


@dataclass
class Section:
    """A heading and what stands below it, up to the next one."""

    level: int
    title: str
    line: int
    prose: str = ""
    keys: dict[str, Any] = field(default_factory=dict)
    key_lines: dict[str, int] = field(default_factory=dict)
    blocks: list[Block] = field(default_factory=list)


@dataclass(frozen=True)
class Page:
    """A whole page; the first section is the title's."""

    path: Path
    front: dict[str, Any]
    sections: tuple[Section, ...]


def read(path: Path) -> Page:
    """Return the page at `path`.

    Raises:
        PageError: the text is no such page.
        OSError: the file cannot be read.
    """
    return parse(path, path.read_bytes().decode("utf-8"))


def parse(path: Path, text: str) -> Page:
    """Return the page that `text` holds; `path` is only named in errors."""
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        if "\r" in line or "\0" in line:
            raise PageError(path, number, "a page has no carriage returns and no NUL: use `crlf` or `escaped`, see README.md")
    front, skipped = _front_matter(path, lines)
    reader = _Reader(path, lines, skipped)
    reader.take(MarkdownIt("commonmark").disable("inline").parse("\n".join(lines[skipped:])))
    if not reader.sections or reader.sections[0].level != 1:
        raise PageError(path, skipped + 1, "a page starts with a title: `# ...`")
    return Page(path, front, tuple(reader.sections))


def _front_matter(path: Path, lines: list[str]) -> tuple[dict[str, Any], int]:
    """Return what stands between two `---` at the top of the page, and the number of lines that this takes."""
    if lines[0] != _RULE:
        return {}, 0
    if _RULE not in lines[1:]:
        raise PageError(path, 1, "front matter has no end: a second `---` is missing")
    end = lines.index(_RULE, 1)
    return _mapping(path, 2, "\n".join(lines[1:end])), end + 1


def _mapping(path: Path, line: int, text: str) -> dict[str, Any]:
    try:
        found = yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        offset = error.problem_mark.line if error.problem_mark else 0
        raise PageError(path, line + offset, f"not YAML: {error.problem}") from error
    if not isinstance(found, dict):
        raise PageError(path, line, f"`key: value` is expected here, not {text!r}")
    return found


class _Reader:
    """Turns the tokens of markdown-it into sections."""

    def __init__(self, path: Path, lines: list[str], skipped: int) -> None:
        self.path, self.lines, self.skipped = path, lines, skipped
        self.sections: list[Section] = []

    def take(self, tokens: list[Token]) -> None:
        """Read `tokens`; only headings, paragraphs, flat lists and fenced blocks may occur."""
        items = 0
        for at, token in enumerate(tokens):
            if token.type == "heading_open":
                self._heading(token, tokens[at + 1].content)
            elif token.type == "fence":
                self._here(token).blocks.append(self._block(token))
            elif token.type in ("list_item_open", "list_item_close"):
                items += token.nesting
            elif token.type == "paragraph_open":
                self._paragraph(token, tokens[at + 1].content, inside=items)
            elif token.type not in _PART_OF_OTHERS:
                raise self._error(token, f"{token.type.removesuffix('_open')} has no meaning on this page")

    def _heading(self, token: Token, title: str) -> None:
        if token.markup not in ("#", "##", "###"):
            raise self._error(token, "a heading starts with one to three `#`")
        if token.markup == "#" and self.sections:
            raise self._error(token, "a page has one title")
        self.sections.append(Section(len(token.markup), title, self._line(token)))

    def _paragraph(self, token: Token, text: str, inside: int) -> None:
        section = self._here(token)
        if not inside:
            section.prose = f"{section.prose} {' '.join(text.split())}".strip()
            return
        for key, value in _mapping(self.path, self._line(token), text).items():
            if key in section.keys:
                raise self._error(token, f"`{key}` stands here twice")
            section.keys[key] = value
            section.key_lines[key] = self._line(token)

    def _block(self, token: Token) -> Block:
        begin, end = self._span(token)
        if end - begin < 2 or self.lines[end - 1].strip() != token.markup:
            raise self._error(token, "this block has no end, or its end is not its beginning's fence")
        if token.level or self.lines[begin][:1] != token.markup[0]:
            raise self._error(token, "a block starts at the left margin")
        return Block(self._line(token), tuple(token.info.split()), tuple(self.lines[begin + 1 : end - 1]))

    def _here(self, token: Token) -> Section:
        if not self.sections:
            raise self._error(token, "a page starts with a title: `# ...`")
        return self.sections[-1]

    def _span(self, token: Token) -> tuple[int, int]:
        assert token.map is not None
        return token.map[0] + self.skipped, token.map[1] + self.skipped

    def _line(self, token: Token) -> int:
        return self._span(token)[0] + 1

    def _error(self, token: Token, message: str) -> PageError:
        return PageError(self.path, self._line(token), message)


_PART_OF_OTHERS = {"heading_close", "inline", "paragraph_close", "bullet_list_open", "bullet_list_close"}
