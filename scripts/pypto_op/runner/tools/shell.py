"""Bash: one command in a process group of its own, which ends with the call."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
from typing import Any, BinaryIO

from pypto_op.runner.tools.table import CallFailed, Place, Tool, number, object_of, text

_SECONDS = 600
_MOST_BYTES = 1 << 20
_WATCHED = '{{ read -r _ <&{0}; kill -9 0; }} & exec {0}<&-; exec bash -c "$1"'
"""The command beside a reader of a pipe that this process alone can write: it ends the group when this process dies."""


def _bash(place: Place, given: dict[str, Any]) -> str:
    wanted = min(given.get("timeout", _SECONDS * 1000) / 1e3, _SECONDS)
    seconds = place.seconds(wanted)
    ours, theirs = os.pipe()
    with tempfile.TemporaryFile() as output:  # a pipe that a child left open would keep us waiting
        child = subprocess.Popen(
            ["bash", "-c", _WATCHED.format(ours), "bash", given["command"]],
            cwd=place.workspace,
            env=dict(place.environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=[ours],
        )
        try:
            code = child.wait(seconds)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            _end(child)
            os.close(ours)
            os.close(theirs)
        said = _said(output)
    if code is None:
        raise CallFailed(f"{said}\n[ended after {seconds:.0f} s; what it started was ended with it]")
    if code:
        raise CallFailed(f"{said}\n[exit code {code}]".lstrip("\n"))
    return said or "(no output)"


def _end(child: subprocess.Popen[bytes]) -> None:
    """End what the command left running: nothing outlives its call."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


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
