"""Bash: one command, which ends with the call, and so does everything that it started."""

from __future__ import annotations

import os
import subprocess
import tempfile
from typing import Any, BinaryIO

from pypto_op import resident
from pypto_op.runner.leash import leashed
from pypto_op.runner.tools.table import CallFailed, Place, Tool, number, object_of, text

_SECONDS = 600
_MOST_BYTES = 1 << 20


def _bash(place: Place, given: dict[str, Any]) -> str:
    wanted = min(given.get("timeout", _SECONDS * 1000) / 1e3, _SECONDS)
    command = ["bash", "-c", given["command"]]
    if resident.may_be_asked(given["command"]):
        resident.prepare(place.workspace)  # below the command it would end with it
    with tempfile.TemporaryFile() as output:  # a pipe that a child left open would keep us waiting
        streams: dict[str, Any] = {"stdout": output, "stderr": subprocess.STDOUT}
        with leashed(command, cwd=place.workspace, env=place.environment, narrow=True, hidden=place.hidden, **streams) as child:
            seconds = place.seconds(wanted)
            try:
                code = child.wait(seconds)
            except subprocess.TimeoutExpired:
                code = None
        said = _said(output)
    if code is None:
        raise CallFailed(f"{said}\n[ended after {seconds:.0f} s; what it started was ended with it]")
    if code:
        raise CallFailed(f"{said}\n[exit code {code}]".lstrip("\n"))
    return said or "(no output)"


def _said(output: BinaryIO) -> str:
    size = output.seek(0, os.SEEK_END)
    if size <= 2 * _MOST_BYTES:
        output.seek(0)
        return output.read().decode("utf-8", errors="replace").rstrip()
    output.seek(0)
    head = output.read(_MOST_BYTES)
    output.seek(-_MOST_BYTES, os.SEEK_END)
    return (head + b"\n...\n" + output.read()).decode("utf-8", errors="replace").rstrip()


TOOLS = [
    Tool(
        "Bash",
        "Run a command with bash, in the workspace. Each call is a new shell; what it leaves running is ended.",
        object_of(
            "command",
            command=text("The command."),
            timeout=number("Milliseconds, at most 600000.", 1),
            description=text("What it is for."),
        ),
        _bash,
        effects=True,
    )
]
