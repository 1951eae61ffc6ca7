"""One file under analysis: its tree, where its nodes stand, and the files beside it that it imports."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

from pypto_op_lint.parsing import parse_file
from pypto_op_lint.source import read_source


@dataclass(eq=False)
class SourceFile:
    """A parsed file."""

    path: Path  # where it lies
    module: cst.Module  # its tree
    name: str = ""  # what messages call it; "" for the file that the user named
    root: Path | None = None  # the folder of the file that the user named, which absolute imports begin at
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


def nodes_in(tree: cst.CSTNode, *kinds: type[cst.CSTNode]) -> list[Any]:
    """Return the nodes of these kinds in a tree, itself included; outer ones come first.

    `libcst.matchers` would do the same, and takes as long to load as all the rest of libcst.
    """
    finder = _Finder(kinds)
    tree.visit(finder)
    return finder.found


class _Finder(cst.CSTVisitor):
    def __init__(self, kinds: tuple[type[cst.CSTNode], ...]) -> None:
        super().__init__()
        self.kinds, self.found = kinds, list[cst.CSTNode]()

    def on_visit(self, node: cst.CSTNode) -> bool:
        if isinstance(node, self.kinds):
            self.found.append(node)
        return True


def load(path: Path, name: str = "", root: Path | None = None) -> SourceFile:
    """Parse a file; `root` is that of the file that imports it.

    Raises:
        UnreadableSource: it is missing, too long, no text, or no Python.
    """
    return SourceFile(path, parse_file(read_source(path).text), name, root or path.resolve().parent)


def sibling(source: SourceFile, dotted: str, level: int) -> Path | None:
    """Return the file beside `source` that `import dotted` would load, or None when there is none.

    Args:
        dotted: the module's name, "" for `from . import x`.
        level: number of leading dots.
    """
    own = source.path.resolve().parent
    if level:
        return _module_at(own.joinpath(*[".."] * (level - 1)).resolve(), dotted)
    roots = [own, *(folder for folder in own.parents if source.root is not None and folder.is_relative_to(source.root))]
    return next(filter(None, (_module_at(folder, dotted) for folder in reversed(roots))), None)


def _module_at(folder: Path, dotted: str) -> Path | None:
    stem = folder.joinpath(*dotted.split(".")) if dotted else folder
    for path in (stem / "__init__.py", stem.with_name(stem.name + ".py")):
        if path.is_file():
            return path
    return None
