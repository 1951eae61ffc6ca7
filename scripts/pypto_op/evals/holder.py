"""One trial in a process of its own, for a worker of a pool: `python -m pypto_op.evals.holder DESCRIPTOR`.

It ends, and takes the trial's workspace and every hidden golden along, when nobody holds the other end of its socket any more: a
worker is killed without a word, and a model that nobody waits for must not go on spending.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from pypto_op import speaking
from pypto_op.evals import requests, trials
from pypto_op.locks import held_folder
from pypto_op.pool import servant
from pypto_op.pool.line import Line
from pypto_op.pool.parcel import translated

DEBRIS = "left_behind.txt"
"""Beside a workspace that came back: what of it did not, being too large."""

_ROOM = "pypto-op-trial"
_MOST_OF_ONE, _MOST_OF_ALL = 16 * 2**20, 128 * 2**20


class Asked(NamedTuple):
    """What is held."""

    request: str  # its id
    number: int  # of the trial
    plan: trials.Plan  # how
    out: str  # the result's folder, as the one who asked names it


class Held(NamedTuple):
    """What came of it."""

    row: dict[str, Any]  # see `trials.run`; it speaks of the folder of the one who asked
    files: dict[str, bytes]  # workspace and transcript: path below that folder -> bytes


def held(asked: Asked) -> Held:
    """Hold a trial in a folder of this process, and remove that."""
    (request,) = requests.load([asked.request])
    with held_folder(Path(tempfile.gettempdir()), _ROOM) as room:
        row = trials.run(request, asked.plan, asked.number, room)
        return Held(translated(row, [(str(room), asked.out)]), _files(room, f"work/{asked.request}-{asked.number}"))


def _files(room: Path, workspace: str) -> dict[str, bytes]:
    """Return the small files of a room, the smallest first, while there is place for them; links stay."""
    files, left, total = {}, [], 0
    for size, path in sorted(_below(room)):
        name, total = os.path.relpath(path, room), total + size
        if size > _MOST_OF_ONE or total > _MOST_OF_ALL:
            left.append(f"{name}: {size} bytes\n")
        else:
            with contextlib.suppress(OSError):
                files[name] = path.read_bytes()
    return {**files, f"{workspace}.{DEBRIS}": "".join(left).encode()} if left else files


def _below(room: Path) -> Iterator[tuple[int, Path]]:
    for place, folders, names in os.walk(room):
        folders[:] = [name for name in folders if name != "__pycache__"]
        paths = (Path(place) / name for name in names)
        yield from ((path.lstat().st_size, path) for path in paths if path.is_file() and not path.is_symlink())


def _end_with(line: Line) -> None:
    """Take it for SIGTERM when nobody holds the other end any more."""
    with contextlib.suppress(EOFError):
        line.hear()
    os.kill(os.getpid(), signal.SIGTERM)


def main(arguments: list[str]) -> int:
    """Hold the trial that the socket names, and answer there; what it is at goes to standard error."""
    if os.fork():  # so it is no child of the worker: Ray ends those with it, before they can tidy up
        os._exit(0)
    os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    descriptor = int(arguments[0])
    os.set_inheritable(descriptor, False)
    line = Line(socket.socket(fileno=descriptor))
    with contextlib.suppress(KeyboardInterrupt, EOFError, OSError), trials.termination_tidies():
        asked = Asked(*line.hear())
        threading.Thread(target=_end_with, args=[line], daemon=True).start()
        with speaking.aloud(f"{asked.request} ({asked.number})"):
            try:
                answer = servant.DONE, pickle.dumps(tuple(held(asked)))  # as a program this module has another name
            except Exception as error:
                answer = servant.FAILED, servant.failure(error)
        line.say(*answer)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
