"""A worker's parent process: it encloses the worker, outlives it, and ends all that the worker started."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
from typing import Any, NoReturn

from pypto_op.backends.processes import children_of, kill, kill_below
from pypto_op.backends.worker import isolation, linux
from pypto_op.backends.worker.serving import live


def guard_session(document: dict[str, Any], channel: int, outputs: tuple[int, int], report: int, *, forked: bool) -> NoReturn:
    """Run the session of `document` in a worker below this process; never returns.

    Args:
        outputs: descriptors for the worker's stdout and stderr.
        report: descriptor on which the judge is told how the worker ended, as one JSON line.
        forked: the parent is the zygote, which has one thread only. (The kernel's signal at a parent's death
            comes when the parent's *thread* ends, so it is of no use below a judge with many.)
    """
    os.setsid()
    if forked:
        linux.die_with_parent(signal.SIGKILL)
    _silence_streams()
    if document["namespaces"]:
        isolation.enter(isolation.Enclosure.from_document(document["enclosure"]))
        first = os.fork()
        if first:
            for descriptor in (channel, *outputs, report):
                os.close(descriptor)
            _wait_for(first)
            os._exit(0)
        linux.die_with_parent(signal.SIGKILL)
        isolation.settle()
    else:
        linux.adopt_orphans()
        signal.signal(signal.SIGTERM, _kill_everything)
    parent = os.getppid()
    worker = os.fork()
    if worker == 0:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        linux.die_with_parent(signal.SIGKILL)
        os.close(report)
        os.dup2(outputs[0], 1)
        os.dup2(outputs[1], 2)
        for descriptor in outputs:
            os.close(descriptor)
        live(document, socket.socket(fileno=channel))
    for descriptor in (channel, *outputs):
        os.close(descriptor)
    status = _reap_until(worker, parent)
    kill_below()
    with contextlib.suppress(OSError):
        os.write(report, json.dumps(_ending(status)).encode() + b"\n")
    os._exit(0)


def _silence_streams() -> None:
    """Point the standard streams at nothing: the zygote's are not this session's."""
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    if null > 2:
        os.close(null)


def _wait_for(child: int) -> None:
    with contextlib.suppress(ChildProcessError):
        os.waitpid(child, 0)


def _reap_until(worker: int, parent: int) -> int:
    """Wait for the worker; end at once every process that it detached, since those come to this one.

    When `parent` is no longer this process's parent, the judge is gone, and everything ends.
    """
    while True:
        for child in children_of(os.getpid()):
            if child != worker:
                kill(child)
        if os.getppid() != parent:
            kill_below()
            os._exit(0)
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == worker:
            return status
        if pid == 0:
            _sleep_until_child_changes(0.1)


def _sleep_until_child_changes(seconds: float) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    signal.sigtimedwait({signal.SIGCHLD}, seconds)


def _kill_everything(number: int, frame: Any) -> NoReturn:
    kill_below()
    os._exit(0)


def _ending(status: int) -> dict[str, int]:
    if os.WIFSIGNALED(status):
        return {"signal": os.WTERMSIG(status)}
    return {"exit": os.WEXITSTATUS(status)}
