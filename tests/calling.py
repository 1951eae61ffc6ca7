"""`pypto-op WORDS` as a user calls it, in this process: torch is imported once, and the simulator's zygote stays warm."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from pypto_op import cli
from pypto_op.documents import schema


@dataclass(frozen=True)
class Answer:
    """What a user gets from a command."""

    code: int
    stdout: str
    stderr: str

    @property
    def report(self) -> dict[str, Any]:
        return json.loads(self.stdout)

    def result(self, name: str) -> dict[str, Any]:
        """What --json printed, held against the schema of that name."""
        told: dict[str, Any] = json.loads(self.stdout)
        assert schema.findings(told, name) == []
        return told


def command(*words: object) -> Answer:
    """Run `pypto-op WORDS` in this process."""
    return _ended(cli.main, [str(word) for word in words])


def _ended(main: Callable[[list[str]], object], words: list[str]) -> Answer:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as end:
        sys.exit(main(words))
    code = end.value.code
    assert isinstance(code, int)
    return Answer(code, out.getvalue(), err.getvalue())


def module(words: list[str]) -> subprocess.CompletedProcess[bytes]:
    """Take the place of `state.deliverables.in_own_process`: a verdict there imports torch twice, once in its own zygote."""
    name, *rest = words
    answer = _ended(importlib.import_module(name).main, rest)
    return subprocess.CompletedProcess(words, answer.code, answer.stdout.encode(), answer.stderr.encode())
