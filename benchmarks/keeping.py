"""How results are kept: JSON with a row a line. `python -m benchmarks.keeping FILE ...` writes files anew in this form."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

WIDTH = 1500
"""So many characters hold a row of any of our tables."""


def load(path: Path) -> dict[str, Any]:
    """Return what is kept in a file; nothing where it is not there yet."""
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else {}


def store(path: Path, value: Any) -> None:
    """Keep a value."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(text(value) + "\n", encoding="utf-8")


def text(value: Any, indent: str = "") -> str:
    """Return a value as JSON: in one line where it fits, else an entry a line."""
    line = json.dumps(value)
    if len(line) + len(indent) <= WIDTH or not isinstance(value, (dict, list)):
        return line
    ends = "{}" if isinstance(value, dict) else "[]"
    entries = ",\n".join(f"{indent} {entry}" for entry in _entries(value, f"{indent} "))
    return f"{ends[0]}\n{entries}\n{indent}{ends[1]}"


def _entries(value: dict[str, Any] | list[Any], indent: str) -> Iterator[str]:
    if isinstance(value, list):
        yield from (text(entry, indent) for entry in value)
        return
    yield from (f"{json.dumps(name)}: {text(entry, indent)}" for name, entry in value.items())


if __name__ == "__main__":
    for name in sys.argv[1:]:
        store(Path(name), json.loads(Path(name).read_text(encoding="utf-8")))
