"""Imports torch, pypto and the calculator once; forks a warden for each session that the judge asks for.

It runs no code of an operator and has a single thread, so a fork of it is a fresh, warm process: ten
milliseconds instead of two seconds. It ends when the judge's end of the control socket closes, whatever the
reason, and everything below it ends with it. That judge may bring others, each with a socket of its own: what one
of them started ends when its socket closes.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import inspect
import json
import os
import select
import signal
import socket
from pathlib import Path
from typing import Any

from pypto_op.backends.allocation import keep_freed
from pypto_op.backends.processes import children_of, kill, kill_below
from pypto_op.backends.worker import crashes, isolation, linux, pypto_hooks
from pypto_op.backends.worker.serving import LONGEST_MESSAGE
from pypto_op.backends.worker.warden import guard_session

_POLL_SECONDS = 0.2
_DESCRIPTORS = 4

Judges = dict[socket.socket, set[int]]
"""The wardens that each judge's sessions have, by that judge's socket."""


def main(document: dict[str, Any], control: int) -> None:
    """Serve the control socket until it closes.

    Args:
        document: `calculator` and `switch`: paths of what to load, or None; `preload`: further modules, or functions to call
            (`MODULE:FUNCTION`).
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    linux.adopt_orphans()
    channel = socket.socket(fileno=control)
    keep_freed()
    gc.disable()  # modules are no garbage; looking for it costs a tenth of loading them
    try:
        versions = _preload(document)
    except Exception as error:
        channel.send(json.dumps({"error": f"{type(error).__name__}: {error}"}).encode())
        return
    answer = {"versions": versions, "namespaces": isolation.allowed()}
    gc.freeze()  # what is loaded by now is never garbage; counting it would copy its pages in every fork
    gc.enable()
    greeting = json.dumps(answer).encode()
    channel.send(greeting)
    judges: Judges = {channel: set()}
    try:
        while channel in judges:
            for ready in select.select(list(judges), [], [], _POLL_SECONDS)[0]:
                if not _serve_once(ready, judges, greeting if ready is channel else b""):
                    _part(judges.pop(ready))
                    ready.close()
            _reap(judges)
    finally:
        for wardens in judges.values():
            _part(wardens)
        kill_below()
        os._exit(0)  # nothing here needs the second that tearing down torch takes


def _preload(document: dict[str, Any]) -> dict[str, str]:
    pypto_hooks.load_before_pypto(_path(document["switch"]))
    import torch

    crashes.load(_path(document.get("crash_frames")))
    versions = {"torch": str(torch.__version__)}
    if document["pypto"]:
        import pypto  # noqa: F401

        if document["calculator"]:
            pypto_hooks.load_calculator(Path(document["calculator"]))
    import safetensors.torch

    from pypto_op.backends.worker import candidate, reference, tripwire  # noqa: F401

    tripwire.made_of_text()

    for name in document.get("preload", ()):  # what the roles of another room import, or a function that makes more ready
        module, _, function = name.partition(":")
        found = importlib.import_module(module)
        if function:
            getattr(found, function)()
    inspect.getmodule(compile("", "", "exec"))  # or each worker that reads a kernel's source resolves the path of every module
    torch.set_num_threads(1)
    versions["safetensors"] = safetensors.__version__
    return versions


def _path(text: str | None) -> Path | None:
    return Path(text) if text else None


def _serve_once(channel: socket.socket, judges: Judges, greeting: bytes) -> bool:
    """Answer one request of a judge; False when that judge is gone. Only a judge that is greeted may bring others."""
    try:
        data, descriptors, _, _ = socket.recv_fds(channel, LONGEST_MESSAGE, _DESCRIPTORS)
    except ConnectionError:
        return False
    if not data:
        return False
    document = json.loads(data)
    if greeting and document.get("judge"):
        further = socket.socket(fileno=descriptors[0])
        judges[further] = set()
        with contextlib.suppress(OSError):
            further.send(greeting)
        return True
    session, out, err, report = descriptors
    warden = os.fork()
    if warden == 0:
        for judge in judges:
            judge.close()
        try:
            guard_session(document, session, (out, err), report, forked=True)
        finally:
            os._exit(1)
    judges[channel].add(warden)
    for descriptor in descriptors:
        os.close(descriptor)
    with contextlib.suppress(OSError):
        channel.send(json.dumps({"warden": warden}).encode())
    return True


def _part(wardens: set[int]) -> None:
    """End what a judge that is gone had started; what was below comes here and is reaped."""
    for warden in wardens:
        kill(warden, signal.SIGTERM)


def _reap(judges: Judges) -> None:
    """Forget wardens that ended; end every process that came here because its warden died."""
    with contextlib.suppress(ChildProcessError):
        while (pid := os.waitpid(-1, os.WNOHANG)[0]) != 0:
            for wardens in judges.values():
                wardens.discard(pid)
    known = set().union(*judges.values())
    for child in children_of(os.getpid()):
        if child not in known:
            kill(child)
