"""Grep and Glob."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pypto_op.runner.tools.table import CallFailed, Place, Tool, number, object_of, text

_MOST_FILES = 20_000
_MOST_BYTES = 2 << 20
_SHOWN = 200
_PASSED_OVER = {".git", ".venv", "node_modules", "__pycache__"}


def _files(root: Path, pattern: str) -> Iterator[Path]:
    if root.is_file():
        yield root
        return
    if Path(pattern).is_absolute() or ".." in Path(pattern).parts:
        raise CallFailed("the pattern must stay below its folder; give `path`")
    for path in itertools.islice(root.glob(pattern), _MOST_FILES):
        if path.is_file() and not _PASSED_OVER & set(path.relative_to(root).parts):
            yield path


def _glob(place: Place, given: dict[str, Any]) -> str:
    root = place.path(given.get("path", "."))
    if not root.is_dir():
        raise CallFailed(f"{root} is no folder")
    found = sorted(_files(root, given["pattern"]), key=lambda path: -path.stat().st_mtime)
    more = [f"... {len(found) - _SHOWN} more"] if len(found) > _SHOWN else []
    return "\n".join([*map(str, found[:_SHOWN]), *more]) or "no file matches"


def _grep(place: Place, given: dict[str, Any]) -> str:
    root = place.path(given.get("path", "."))
    if not root.exists():
        raise CallFailed(f"{root} does not exist")
    try:
        wanted = re.compile(given["pattern"], re.IGNORECASE if given.get("-i") else 0)
    except re.error as error:
        raise CallFailed(f"the pattern is no regular expression: {error}") from None
    pattern = given.get("glob", "*")
    names = pattern if "/" in pattern else f"**/{pattern}"
    hits = itertools.islice(_hits(root, names, wanted, given.get("-C", 0)), given.get("head_limit", _SHOWN))
    if given.get("output_mode", "content") == "files_with_matches":
        return "\n".join(dict.fromkeys(str(path) for path, _ in hits)) or "no match"
    return "\n".join(f"{path}:{shown}" for path, shown in hits) or "no match"


def _hits(root: Path, names: str, wanted: re.Pattern[str], around: int) -> Iterator[tuple[Path, str]]:
    for path in sorted(_files(root, names)):
        if path.stat().st_size > _MOST_BYTES:
            continue
        content = path.read_bytes()
        if b"\0" in content[:1024]:
            continue
        lines = content.decode("utf-8", errors="replace").splitlines()
        for index, line in enumerate(lines):
            if wanted.search(line):
                shown = range(max(0, index - around), min(len(lines), index + around + 1))
                yield path, "\n".join(f"{at + 1}:{lines[at][:500]}" for at in shown)


_FOLDER = text("Where to look: a folder, or a file; default: the workspace.")

TOOLS = [
    Tool(
        "Glob",
        "List the files whose path matches a pattern such as custom/**/*.md, the newest first.",
        object_of("pattern", pattern=text("The pattern."), path=text("The folder; default: the workspace.")),
        _glob,
        effects=False,
    ),
    Tool(
        "Grep",
        "Find the lines of files that match a regular expression (Python's).",
        object_of(
            "pattern",
            pattern=text("The regular expression."),
            path=_FOLDER,
            glob=text("Only files of this name, such as *.py."),
            output_mode={"enum": ["content", "files_with_matches"]},
            head_limit=number("At most so many hits.", 1),
            **{"-i": {"type": "boolean", "description": "Ignore case."}, "-C": number("Lines around each hit.")},
        ),
        _grep,
        effects=False,
    ),
]
