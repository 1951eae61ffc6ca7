"""The bundle's prose as data: every Markdown file of agents and skills, with its code spans and fenced blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

_FENCE = re.compile(r"^(?P<indent> {0,6})(?P<mark>`{3,}|~{3,})(?P<language>[\w+-]*)[^`]*$")
_SPAN = re.compile(r"(?<!`)(`{1,2})(?!`)(.+?)(?<!`)\1(?!`)")
_LINK = re.compile(r"\[[^\]\n]*\]\((?P<to>[^)\s]+)\)")


@dataclass(frozen=True)
class Piece:
    """A piece of a text: a code span, a link's goal or a line of a block, with its line number."""

    line: int
    text: str


@dataclass(frozen=True)
class Block:
    """A fenced block: where it begins, its language ("" for none), its text."""

    line: int
    language: str
    text: str

    def pieces(self) -> Iterator[Piece]:
        """Yield its lines."""
        for offset, text in enumerate(self.text.split("\n"), 1):
            yield Piece(self.line + offset, text)


@dataclass(frozen=True)
class Text:
    """One Markdown file.

    Attributes:
        path: the file.
        root: the bundle.
        text: its words.
    """

    path: Path
    root: Path
    text: str

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
    def blocks(self) -> list[Block]:
        """The fenced blocks."""
        found: list[Block] = []
        opened: tuple[int, re.Match[str], list[str]] | None = None
        for number, line in enumerate(self.text.split("\n"), 1):
            match = _FENCE.match(line)
            if opened is None and match:
                opened = (number, match, [])
            elif opened is not None:
                if match and match["mark"].startswith(opened[1]["mark"]) and not match["language"]:
                    found.append(Block(opened[0], opened[1]["language"], "\n".join(opened[2])))
                    opened = None
                else:
                    opened[2].append(line.removeprefix(opened[1]["indent"]))
        if opened is not None:
            found.append(Block(opened[0], opened[1]["language"], "\n".join(opened[2])))
        return found

    @cached_property
    def prose(self) -> list[Piece]:
        """The lines outside blocks."""
        inside = {n for block in self.blocks for n in range(block.line, block.line + block.text.count("\n") + 3)}
        return [Piece(n, line) for n, line in enumerate(self.text.split("\n"), 1) if n not in inside]

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
        for block in self.blocks:
            yield from block.pieces()


def read_texts(root: Path) -> list[Text]:
    """Return every Markdown file of agents and skills."""
    paths = [*sorted((root / ".agents").glob("*.md")), *sorted((root / "skills").rglob("*.md"))]
    return [Text(path, root, path.read_text(encoding="utf-8")) for path in paths]
