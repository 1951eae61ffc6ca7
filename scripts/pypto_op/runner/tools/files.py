"""Read, Write and Edit."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from pypto_op.runner.tools.table import CallFailed, Place, Tool, number, object_of, shows_a_process, text

_LINES = 2000
_MOST_BYTES = 4 << 20
_FILE = text("The file: absolute, or relative to the workspace.")


def _content(path: Path) -> str:
    if path.is_dir():
        raise CallFailed(f"{path} is a folder; list it with Glob")
    if not path.exists():
        raise CallFailed(f"{path} does not exist")
    if not path.is_file() or path.stat().st_size > _MOST_BYTES:
        raise CallFailed(f"{path} is no file of at most {_MOST_BYTES >> 20} MiB; look at a part of it with Bash")
    if shows_a_process(path):
        raise CallFailed(f"{path} lies in /proc, which shows this tool's own process; look with Bash")
    return path.read_bytes().decode("utf-8", errors="replace")


def _read(place: Place, given: dict[str, Any]) -> str:
    lines = _content(place.path(given["file_path"])).splitlines()
    first = max(given.get("offset", 1), 1)
    shown = lines[first - 1 : first - 1 + given.get("limit", _LINES)]
    rows = [f"{first + index:6}\t{line}" for index, line in enumerate(shown)]
    left = len(lines) - (first - 1 + len(shown))
    return "\n".join([*rows, f"... {left} more lines"] if left > 0 else rows) or "(empty)"


def _write(place: Place, given: dict[str, Any]) -> str:
    path = place.path(given["file_path"])
    new = not path.exists()
    path.parent.mkdir(parents=True, exist_ok=True)
    _replace(path, given["content"])
    return f"{'Created' if new else 'Replaced'} {path}"


def _edit(place: Place, given: dict[str, Any]) -> str:
    path, old, new = place.path(given["file_path"]), given["old_string"], given["new_string"]
    content = _content(path)
    count = content.count(old) if old else 0
    if old == new:
        raise CallFailed("old_string and new_string are the same")
    if count == 0:
        raise CallFailed(f"old_string does not occur in {path}; read the file, then give its exact text")
    if count > 1 and not given.get("replace_all"):
        raise CallFailed(f"old_string occurs {count} times in {path}; give more of the text around it, or set replace_all")
    _replace(path, content.replace(old, new))
    return f"Edited {path}: {count} place{'s' if count > 1 else ''}"


def _replace(path: Path, content: str) -> None:
    """Write the whole file or nothing: a run may be killed at any moment."""
    target = path.resolve()
    if target.exists() and not target.is_file():
        raise CallFailed(f"{path} is no file, but a folder, a device, a pipe or a socket, and nothing replaces it; name a file")
    draft = target.with_name(f".{target.name}.{os.getpid()}.draft")
    try:
        with draft.open("w", encoding="utf-8", newline="") as file:
            file.write(content)
        if target.exists():
            draft.chmod(target.stat().st_mode & 0o777)
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


TOOLS = [
    Tool(
        "Read",
        "Read a text file; each line comes with its number.",
        object_of("file_path", file_path=_FILE, offset=number("First line, from 1."), limit=number("How many lines.", 1)),
        _read,
        effects=False,
    ),
    Tool(
        "Write",
        "Write a whole file; what it held is replaced.",
        object_of("file_path content", file_path=_FILE, content=text("All of the new text.")),
        _write,
        effects=True,
    ),
    Tool(
        "Edit",
        "Replace a text that occurs once in a file.",
        object_of(
            "file_path old_string new_string",
            file_path=_FILE,
            old_string=text("The exact text."),
            new_string=text("What stands there afterwards."),
            replace_all={"type": "boolean", "description": "Replace every occurrence."},
        ),
        _edit,
        effects=True,
    ),
]
