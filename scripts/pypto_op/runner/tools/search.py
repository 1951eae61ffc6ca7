"""Grep and Glob."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pypto_op.runner.tools import matching
from pypto_op.runner.tools.table import CallFailed, Place, Tool, number, object_of, shows_a_process, text

_MOST_FILES = 20_000
_MOST_BYTES = 2 << 20
_SHOWN = 200
_SECONDS = 60.0
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
    if shows_a_process(root):
        raise CallFailed(f"{root} lies in /proc, which shows this tool's own process; look with Bash")
    try:
        re.compile(given["pattern"])
    except re.error as error:
        raise CallFailed(f"the pattern is no regular expression: {error}") from None
    pattern = given.get("glob", "*")
    names = pattern if "/" in pattern else f"**/{pattern}"
    found = sorted(path for path in _files(root, names) if not shows_a_process(path))
    files = [str(path) for path in found if path.stat().st_size <= _MOST_BYTES]
    hits = _hits(place, given, files)
    if given.get("output_mode", "content") == "files_with_matches":
        return "\n".join(dict.fromkeys(path for path, _ in hits)) or "no match"
    return "\n".join(f"{path}:{shown}" for path, shown in hits) or "no match"


def _hits(place: Place, given: dict[str, Any], files: list[str]) -> list[tuple[str, str]]:
    asked = {
        "pattern": given["pattern"], "ignore_case": bool(given.get("-i")), "files": files, "around": given.get("-C", 0),
        "most": given.get("head_limit", _SHOWN),
    }  # fmt: skip
    seconds = place.seconds(_SECONDS)
    command = [sys.executable, "-I", "-S", matching.__file__]
    try:
        done = subprocess.run(command, input=json.dumps(asked), capture_output=True, text=True, timeout=seconds, check=False)
        found: list[tuple[str, str]] = json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        raise CallFailed(f"the search was ended after {seconds:.0f} s; take a simpler pattern, or fewer files") from None
    except ValueError:
        raise CallFailed(f"the search failed: {(done.stderr.strip().splitlines() or ['no answer'])[-1]}") from None
    return found


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
