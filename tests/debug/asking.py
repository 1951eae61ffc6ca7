"""Runs `pypto-op debug` as a user would, and checks what it prints against its schema."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pypto_op import cli
from pypto_op.bundle_files import bundle_root
from pypto_op.documents import schema
from pypto_op.workspace import OpWorkspace


@dataclass(frozen=True)
class Answer:
    code: int
    stdout: str
    stderr: str

    def result(self, name: str) -> dict[str, Any]:
        told = json.loads(self.stdout)
        assert schema.findings(told, name) == []
        return told


def ask(*words: object) -> Answer:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as end:
        cli.main(["debug", *map(str, words)])
    return Answer(int(end.value.code or 0), out.getvalue(), err.getvalue())


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


def need_numbers() -> None:
    from pypto_op.backends.sim import SimBackend

    available = SimBackend().availability()
    if not (available.ok and available.numeric):
        pytest.skip(available.reason)
