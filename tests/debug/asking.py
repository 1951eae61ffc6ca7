"""Runs `pypto-op debug` as a user would, and checks what it prints against its schema."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.calling import Answer, command

from pypto_op.bundle_files import bundle_root
from pypto_op.workspace import OpWorkspace


def ask(*words: object) -> Answer:
    """Run `pypto-op debug WORDS`."""
    return command("debug", *words)


def place(folder: Path, name: str, *edits: tuple[str, str], golden: tuple[str, str] | None = None) -> OpWorkspace:
    """Copy an example without its modules; `edits` change its kernel, `golden` its golden."""
    root = folder / "custom" / name
    source = bundle_root() / "examples" / "ops" / name
    shutil.copytree(source, root, ignore=shutil.ignore_patterns("__pycache__", "_debug", "modules"))
    ws = OpWorkspace.at(root)
    for file, changes in ((ws.impl, edits), (ws.golden, [golden] if golden else [])):
        text = file.read_text()
        for old, new in changes:
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        file.write_text(text)
    return ws


def line_of(file: Path, words: str) -> int:
    return next(number for number, line in enumerate(file.read_text().splitlines(), 1) if words in line)
