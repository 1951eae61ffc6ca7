"""A command in a process group of its own, which ends with the work on it, and with this process however that ends."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

_WATCHED = '{{ read -r _ <&{0}; kill -9 0; }} >/dev/null 2>&1 & exec {0}<&-; exec "$@"'
"""The command beside a reader of a pipe that this process alone can write: it ends the group when this process dies."""


@contextlib.contextmanager
def leashed(
    command: Sequence[str], *, cwd: Path, env: Mapping[str, str], stdout: int | IO[bytes], stderr: int | IO[bytes]
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a command without input; at the end of the block its group is killed, whatever became of it.

    Args:
        command: the program and its arguments.
        cwd, env, stdout, stderr: as `subprocess.Popen` takes them.
    """
    ours, theirs = os.pipe()
    try:
        child = subprocess.Popen(
            ["bash", "-c", _WATCHED.format(ours), "bash", *command],
            cwd=cwd, env=dict(env), stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr,
            start_new_session=True, pass_fds=[ours],
        )  # fmt: skip
        try:
            yield child
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
    finally:
        os.close(ours)
        os.close(theirs)
