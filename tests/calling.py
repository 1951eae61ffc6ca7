"""`pypto-op WORDS` as a user calls it, in this process: torch is imported once, and the simulator's zygote stays warm."""

from __future__ import annotations

import contextlib
import io
import json
from dataclasses import dataclass
from typing import Any

from pypto_op import cli


@dataclass(frozen=True)
class Answer:
    """What a user gets from a command."""

    code: int
    stdout: str
    stderr: str

    @property
    def report(self) -> dict[str, Any]:
        return json.loads(self.stdout)


def command(*words: object) -> Answer:
    """Run `pypto-op WORDS` in this process."""
    out, err = io.StringIO(), io.StringIO()
    code: object = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            cli.main([str(word) for word in words])
        except SystemExit as end:
            code = end.code
    assert isinstance(code, int)
    return Answer(code, out.getvalue(), err.getvalue())
