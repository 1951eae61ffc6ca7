"""The life of a worker: set up, load, then one answer per message until the judge hangs up.

A case takes two turns. The worker says that it has run, and only then learns the nonce that its answer must
carry. Code that ends the process early, or leaves a result file behind, does not have it.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import socket
import sys
from pathlib import Path
from typing import Any, NoReturn, Protocol

from pypto_op.backends.base import COMPILED_DIR
from pypto_op.backends.wire import write_values
from pypto_op.backends.worker import crashes, isolation, linux
from pypto_op.backends.worker.loading import Failure
from pypto_op.vocabulary import Outcome

LONGEST_MESSAGE = 64 * 1024


class Role(Protocol):
    """What a worker can be."""

    def handle(self, message: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Answer one message with values and facts."""


def send(channel: socket.socket, message: dict[str, Any]) -> None:
    """Send one message."""
    channel.send(json.dumps(message).encode())


def receive(channel: socket.socket) -> dict[str, Any] | None:
    """Return the next message, or None when the other side is gone."""
    data = channel.recv(LONGEST_MESSAGE)
    if not data:
        return None
    message = json.loads(data)
    return message if isinstance(message, dict) else None


def live(document: dict[str, Any], channel: socket.socket) -> NoReturn:
    """Play the role that `document` names; never returns."""
    code = 1
    try:
        _set_up(document)
        role = _enter_role(document, channel)
        if role is not None:
            _serve(role, channel)
        code = 0
    except OSError as error:
        # The judge hung up, or the candidate closed the channel; the judge sees the end of this process.
        _say(f"the channel to the judge is lost: {error}")
    except BaseException as error:
        _say(f"the worker failed: {type(error).__name__}: {error}")
        import traceback

        traceback.print_exc()
    finally:
        _flush()
        os._exit(code)


def _set_up(document: dict[str, Any]) -> None:
    scratch = Path(document["enclosure"]["scratch"])
    for name in ("cwd", "tmp", "pypto", COMPILED_DIR):
        (scratch / name).mkdir(exist_ok=True)
    os.chdir(scratch / "cwd")
    os.environ |= {
        "HOME": str(scratch),
        "TMPDIR": str(scratch / "tmp"),
        "TILE_FWK_OUTPUT_DIR": str(scratch / "pypto"),
        "PYPTO_OP_CC_CACHE": str(scratch / COMPILED_DIR),
        "TILE_FWK_DEVICE_ID": str(document["device"].get("index", 0)),
    }
    import tempfile

    tempfile.tempdir = None  # it remembers the folder of the process that this one was forked from
    crashes.tell()
    if not document["device"].get("reserves_memory"):
        isolation.limit_memory(int(document["memory_mb"]))


def _enter_role(document: dict[str, Any], channel: socket.socket) -> Role | None:
    role: Role
    try:
        if document["role"] == "candidate":
            from pypto_op.backends.worker.candidate import Candidate

            role = Candidate(document)
        elif ":" in document["role"]:  # of another room: "package.module:Class"
            module, _, name = document["role"].partition(":")
            role = getattr(importlib.import_module(module), name)(document)
        else:
            from pypto_op.backends.worker.reference import Reference

            role = Reference(document)
    except Failure as failure:
        _flush()
        send(channel, {"event": "failed", "outcome": str(failure.outcome), "detail": failure.detail})
        return None
    _flush()
    send(channel, {"event": "ready"})
    return role


def _serve(role: Role, channel: socket.socket) -> None:
    while (message := receive(channel)) is not None:
        values, facts = role.handle(message)
        _flush()
        send(channel, {"event": "ran"})
        answer = receive(channel)
        if answer is None:
            return
        try:
            write_values(Path(message["outputs"]), values, nonce=answer["nonce"], **facts)
        except TypeError as error:
            facts |= {"outcome": str(Outcome.BAD_OUTPUT), "detail": str(error)}
            write_values(Path(message["outputs"]), [], nonce=answer["nonce"], **facts)
        send(channel, {"event": "wrote"})


def _flush() -> None:
    """Write out what Python and C have buffered; a candidate may have closed or replaced its streams."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    linux.flush_stdio()


def _say(words: str) -> None:
    with contextlib.suppress(OSError):
        os.write(2, f"pypto-op: {words}\n".encode())
