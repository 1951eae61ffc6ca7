"""Dotted names, and what an import statement binds: the one reader of `import` and `from ... import`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import libcst as cst


class Imported(NamedTuple):
    """One name of an import statement."""

    bound: str  # the name that the file then has; "*" for a star
    target: str  # the dotted name that `bound` stands for, with the dots of a relative import
    loaded: str  # the whole dotted name that is written: `a.b` for `import a.b`, whose `bound` and `target` are `a`


def dotted(node: cst.CSTNode | None) -> str:
    """Return `a.b.c` for a chain of names, "" for anything else."""
    parts: list[str] = []
    while isinstance(node, cst.Attribute):
        parts.append(node.attr.value)
        node = node.value
    if not isinstance(node, cst.Name):
        return ""
    parts.append(node.value)
    return ".".join(reversed(parts))


def imported_by(node: cst.CSTNode) -> Iterator[Imported]:
    """Yield what an import statement binds; nothing for any other node."""
    if isinstance(node, cst.Import):
        for alias in node.names:
            path = dotted(alias.name)
            top = path.partition(".")[0]
            renamed = _renamed(alias)
            yield Imported(renamed, path, path) if renamed else Imported(top, top, path)
    elif isinstance(node, cst.ImportFrom):
        base = "." * len(node.relative) + dotted(node.module)
        if isinstance(node.names, cst.ImportStar):
            yield Imported("*", base, base)
            return
        for alias in node.names:
            name = dotted(alias.name)
            path = base + name if base.endswith(".") or not base else f"{base}.{name}"
            yield Imported(_renamed(alias) or name, path, path)


def _renamed(alias: cst.ImportAlias) -> str:
    return alias.asname.name.value if alias.asname is not None and isinstance(alias.asname.name, cst.Name) else ""
