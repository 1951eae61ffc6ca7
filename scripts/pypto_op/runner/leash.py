"""Starts a command that cannot outlive its call or this process, and ends all that the command started with it."""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

from pypto_op.runner import supervisor

_SUPERVISOR = [sys.executable, "-I", "-S", supervisor.__file__]
_SECONDS = 10.0
"""How long the supervisor may take to end what the command started; after that its process group is killed."""


@functools.cache
def _can_be_alone() -> bool:
    """Whether this machine lets a command have a name space of processes of its own."""
    return subprocess.run([*_SUPERVISOR, supervisor.ASKS], stdin=subprocess.DEVNULL, check=False).returncode == 0


@contextlib.contextmanager
def leashed(
    command: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    stdout: int | IO[bytes],
    stderr: int | IO[bytes],
    narrow: bool = False,
    hidden: Sequence[str] = (),
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a command without input below a supervisor; it has begun when the block begins, and all of it has ended after that.

    The supervisor ends its command when the pipe that this process alone can write is closed, so also when this process dies.

    Args:
        cwd, env, stdout, stderr: as `subprocess.Popen` takes them.
        narrow: whether it can write only in `cwd`, for temporary files and for caches (`view.narrow`).
        hidden: folders that it does not see, where the machine allows that; a narrow one cannot uncover them.
    """
    how = [*(["alone"] if _can_be_alone() else []), *(["narrow"] if narrow else [])]
    (ours, theirs), (began, begins) = os.pipe(), os.pipe()
    try:
        child = subprocess.Popen(
            [*_SUPERVISOR, str(ours), str(begins), ",".join(how) or "-", str(len(hidden)), *hidden, *command],
            cwd=cwd, env=dict(env), stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr,
            start_new_session=True, pass_fds=[ours, begins],
        )  # fmt: skip
    except BaseException:
        os.close(theirs)
        os.close(began)
        raise
    finally:
        os.close(ours)
        os.close(begins)
    try:
        with os.fdopen(began, "rb") as start:
            start.read()  # to the end of the pipe: the supervisor's copy closes with the command's first instruction
        yield child
    finally:
        os.close(theirs)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(_SECONDS)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
