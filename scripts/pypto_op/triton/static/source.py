"""One file under analysis: its tree, where its nodes stand, and the files beside it that it imports."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

_LONGEST = 2_000_000


class Unreadable(Exception):
    """A file that is no Python text; the message says why, in one line."""


@dataclass(eq=False)
class SourceFile:
    """A parsed file.

    Attributes:
        path: where it lies.
        module: its tree.
        name: what messages call it; "" for the file that the user named.
    """

    path: Path
    module: cst.Module
    name: str = ""
    _lines: dict[cst.CSTNode, int] = field(default_factory=dict)
    _located: bool = False

    def line_of(self, node: cst.CSTNode) -> int:
        """Return the line of a node. Positions cost more than all the rest, so they are computed when first asked for."""
        if not self._located:
            self._located = True
            wrapper = MetadataWrapper(self.module, unsafe_skip_copy=True)
            self._lines = {n: place.start.line for n, place in wrapper.resolve(PositionProvider).items()}
        return self._lines.get(node, 0)

    def text_of(self, node: cst.CSTNode) -> str:
        """Return a node's source on one line, at most 120 characters."""
        text = " ".join(self.module.code_for_node(node).split())
        return text if len(text) <= 120 else text[:117] + "..."


def read_source(path: Path, name: str = "") -> SourceFile:
    """Parse a file.

    Raises:
        Unreadable: it is missing, too long, not UTF-8, or no Python.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise Unreadable(f"{path}: {error.strerror or error}") from None
    if len(data) > _LONGEST:
        raise Unreadable(f"{path}: {len(data)} bytes are too many for a kernel's file")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unreadable(f"{path}: not UTF-8 text (byte {error.start})") from None
    try:
        return SourceFile(path, cst.parse_module(text), name)
    except cst.ParserSyntaxError as error:
        raise Unreadable(f"{path}: line {error.raw_line}: no valid Python syntax") from None
    except (RecursionError, ValueError) as error:
        raise Unreadable(f"{path}: cannot be parsed ({type(error).__name__})") from None


def sibling(source: SourceFile, dotted: str, level: int) -> Path | None:
    """Return the file beside `source` that `import dotted` would load, or None when there is none.

    Args:
        source: the importing file.
        dotted: the module's name, "" for `from . import x`.
        level: number of leading dots.
    """
    folder = source.path.resolve().parent
    for _ in range(max(0, level - 1)):
        folder = folder.parent
    stem = folder.joinpath(*dotted.split(".")) if dotted else folder
    for path in (stem.with_name(stem.name + ".py"), stem / "__init__.py"):
        if path.is_file():
            return path
    return None
