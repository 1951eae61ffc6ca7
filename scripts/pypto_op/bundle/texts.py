"""The bundle's prose as data: every Markdown file of agents and skills, with its code spans and fenced blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pypto_op.documents.markdown import Markdown

_SPAN = re.compile(r"(?<!`)(`{1,2})(?!`)(.+?)(?<!`)\1(?!`)")
_LINK = re.compile(r"\[[^\]\n]*\]\((?P<to>[^)\s]+)\)")


@dataclass(frozen=True)
class Piece:
    """A piece of a text: a code span, a link's goal or a line of a block, with its line number."""

    line: int
    text: str


@dataclass(frozen=True)
class Text:
    """One Markdown file."""

    path: Path  # the file
    root: Path  # the bundle
    text: str  # its words

    @property
    def name(self) -> str:
        """Path relative to the bundle."""
        return self.path.relative_to(self.root).as_posix()

    @property
    def skill(self) -> Path | None:
        """Folder of the skill that the file belongs to, None for an agent or a page."""
        parts = self.path.relative_to(self.root).parts
        return self.root / parts[0] / parts[1] if parts[0] == "skills" and len(parts) > 2 else None

    @property
    def shows_mistakes(self) -> bool:
        """Whether it is a page of the rule reference, made from the rules; their tests run its good and bad code."""
        return "/lint-rules/" in self.name

    @cached_property
    def markdown(self) -> Markdown:
        """The text, taken apart."""
        return Markdown(self.text)

    @property
    def prose(self) -> list[Piece]:
        """The lines outside blocks."""
        return [Piece(number, line) for number, line in self.markdown.prose]

    @cached_property
    def spans(self) -> list[Piece]:
        """The code spans of the prose; one that a line break divides is left out."""
        return [Piece(piece.line, found[2].strip()) for piece in self.prose for found in _SPAN.finditer(piece.text)]

    @cached_property
    def links(self) -> list[Piece]:
        """The goals of the links."""
        return [Piece(piece.line, found["to"]) for piece in self.prose for found in _LINK.finditer(piece.text)]

    def code(self) -> Iterator[Piece]:
        """Yield everything that is set as code: spans and the lines of blocks."""
        yield from self.spans
        for block in self.markdown.fences:
            yield from (Piece(number, line) for number, line in enumerate(block.text.split("\n"), block.line))


def read_texts(root: Path) -> list[Text]:
    """Return every Markdown file of agents and skills."""
    paths = [*sorted((root / ".agents").glob("*.md")), *sorted((root / "skills").rglob("*.md"))]
    return [Text(path, root, path.read_text(encoding="utf-8")) for path in paths]
