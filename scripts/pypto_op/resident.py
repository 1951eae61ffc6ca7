"""The caller's side of the resident judge: a process of a workspace that has torch loaded and runs commands in forks of itself.

A command that it serves hands over its words, its environment and its standard streams, and ends as the fork does. Where there
is none, or it does not answer, the command runs as it always did. `judge/resident.py` is the other side. Standard library
only: every command imports this.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pypto_op import name_space, own_python

ENV = "PYPTO_OP_RESIDENT"
"""`1`: start one where there is none; `0`: never ask one; else ask the one that is there."""
OWNER_ENV = "PYPTO_OP_RESIDENT_OWNER"
"""The process of whoever wants it, as `PID@NAMESPACE`: it ends when that is gone, as far as it can see that."""
IDLE_ENV = "PYPTO_OP_RESIDENT_IDLE"
SERVED = frozenset({"verify", "harness", "benchmark", "reproduce", "triton verify", "triton benchmark"})
"""Commands that import torch and run nobody's code in their own process."""
_ASKING = ("advance", "cleanup", "tune", "regress", "mutate")
"""Further commands that start served ones."""
SOCKET, LOCK, LOG = "judge.sock", "judge.lock", "judge.log"
HEAD_BYTES = 10
"""A message begins with its length, in so many digits."""
_LIKE = (
    "PYTHON", "LD_", "OMP_", "MKL_", "OPENBLAS_", "TORCH", "TRITON", "ASCEND", "TILE_FWK", "CUDA", "PYPTO_OP_", "LC_", "PATH",
    "HOME", "LANG", "TZ", "TMPDIR", "XDG_",
)  # fmt: skip
_UNLIKE = frozenset(
    {ENV, OWNER_ENV, IDLE_ENV, "PYPTO_OP_TOKEN", "PYPTO_OP_RUN_PIPE", "PYPTO_OP_PYTHON", "PYPTO_OP_HIDDEN", "PYTHONPATH"}
)
_CONNECT_SECONDS = 5.0

leash: socket.socket | None = None
"""In a fork of the resident judge: the connection to it. `zygote` asks there for the process that workers are forked from."""


def runs_folder() -> Path:
    """Return the folder that holds the folder of each workspace's resident judge."""
    return Path(os.environ.get("PYPTO_OP_CACHE") or "~/.cache/pypto-op").expanduser() / "judges"


def folder_of(workspace: Path) -> Path:
    """Return the private folder of a workspace's resident judge, for callers with an environment like this one's.

    Another Python, another bundle, or variables that change what is loaded make another judge.
    """
    like = {name: value for name, value in os.environ.items() if name.startswith(_LIKE) and name not in _UNLIKE}
    own = Path(__file__).resolve()
    further = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path not in ("", str(own.parents[1]))]
    parts = [str(workspace), sys.executable, str(own), further, like]
    return runs_folder() / hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:20]


def workspace_here() -> Path:
    """Return the nearest folder from here upwards that holds `custom/`, else the current one."""
    here = Path.cwd()
    return next((folder for folder in (here, *here.parents) if (folder / "custom").is_dir()), here)


def ask(words: Sequence[str]) -> int | None:
    """Let the resident judge run `pypto-op WORDS`; return its exit code, or None where the caller has to run it itself."""
    wanted = os.environ.get(ENV, "")
    if wanted == "0" or leash is not None or not _is_served(words):
        return None
    try:
        connection = _connection(workspace_here(), start=wanted == "1")
        if connection is None:
            return None
        with connection:
            return _served(connection, words)
    except OSError:  # it ended before it began: nothing was done, nothing was said
        return None


def _is_served(words: Sequence[str]) -> bool:
    named = {" ".join(words[:count]) for count in (1, 2)}
    return bool(named & SERVED) and not {"-h", "--help"} & set(words)


def want(owner: int) -> None:
    """Let this process's commands start a resident judge, which ends with the process `owner`; a user's own word stands."""
    os.environ.setdefault(ENV, "1")
    os.environ.setdefault(OWNER_ENV, f"{owner}@{name_space.here()}")


def prepare(workspace: Path) -> None:
    """Start the resident judge of a workspace where none runs: below this process, not below the command that asks first."""
    with contextlib.suppress(OSError):
        connection = _connection(workspace, start=os.environ.get(ENV) == "1")
        if connection is not None:
            connection.close()


def may_be_asked(command: str) -> bool:
    """Whether a shell command may come to one of the served commands, as far as its words say."""
    return "pypto-op" in command and any(word in command for word in (*SERVED, *_ASKING))


def end(workspace: Path) -> None:
    """End the resident judge of a workspace, and everything that it runs; harmless where there is none."""
    with contextlib.suppress(OSError):
        connection = _connection(workspace, start=False)
        if connection is not None:
            with connection:
                connection.settimeout(_CONNECT_SECONDS)
                send(connection, {"end": True}, [])
                connection.recv(1)


def zygote(document: Mapping[str, Any], variables: Mapping[str, str]) -> tuple[int, socket.socket] | None:
    """Return the process that the resident judge keeps for forks, and a connection to it; None outside of such a judge."""
    if leash is None:
        return None
    try:
        send(leash, {"zygote": document, "variables": variables}, [])
        message, descriptors = receive(leash, 1)
    except OSError:
        return None
    if message is None or not descriptors:
        return None
    return int(message["pid"]), socket.socket(fileno=descriptors[0])


# -- messages -------------------------------------------------------------------------------------------------------


def send(connection: socket.socket, message: Mapping[str, Any], descriptors: Sequence[int]) -> None:
    """Send one message, and descriptors with its head."""
    data = json.dumps(message).encode("utf-8", "surrogateescape")
    socket.send_fds(connection, [b"%0*d" % (HEAD_BYTES, len(data))], list(descriptors))
    connection.sendall(data)


def receive(connection: socket.socket, most: int) -> tuple[dict[str, Any] | None, list[int]]:
    """Return one message and its descriptors; None when the other side is gone."""
    head, descriptors, _, _ = socket.recv_fds(connection, HEAD_BYTES, most)
    if len(head) < HEAD_BYTES or not head.isdigit():
        return None, descriptors
    left, parts = int(head), []
    while left:
        part = connection.recv(min(left, 1 << 20))
        if not part:
            return None, descriptors
        parts.append(part)
        left -= len(part)
    message: dict[str, Any] = json.loads(b"".join(parts).decode("utf-8", "surrogateescape"))
    return message, descriptors


def _served(connection: socket.socket, words: Sequence[str]) -> int | None:
    """Hand the command over and wait for its end."""
    streams = {name: [stream.encoding, stream.errors] for name, stream in (("out", sys.stdout), ("err", sys.stderr))}
    sys.stdout.flush()
    sys.stderr.flush()
    message = {"words": list(words), "cwd": str(Path.cwd()), "environment": dict(os.environ), "streams": streams}
    send(connection, message, [0, 1, 2])
    begun = False
    with _interrupts(lambda: connection.sendall(b"I")):
        while True:
            answer, _ = receive(connection, 0)
            if answer is None:
                break
            if "code" in answer:
                return int(answer["code"])
            begun = True
    if not begun:
        return None
    sys.stderr.write("pypto-op: the resident judge was ended; run the command again\n")
    return 3


@contextlib.contextmanager
def _interrupts(tell: Callable[[], None]) -> Iterator[None]:
    """While it lasts, Ctrl-C goes to the fork, which says so and ends; the caller ends as it does."""

    def pass_on(number: int, frame: object) -> None:
        with contextlib.suppress(OSError):
            tell()

    before = signal.signal(signal.SIGINT, pass_on)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


# -- its place ------------------------------------------------------------------------------------------------------


def _connection(workspace: Path, *, start: bool) -> socket.socket | None:
    """Return a connection to the judge of a workspace; None where there is none and none is to be started."""
    folder = folder_of(workspace)
    if start:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    elif not folder.is_dir():
        return None
    handle = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    try:
        if os.fstat(handle).st_uid != os.geteuid():
            return None
        found = _connected(f"/proc/self/fd/{handle}/{SOCKET}")  # a socket's own path may be too long
        if found is None and start:
            with _alone(folder):
                found = _connected(f"/proc/self/fd/{handle}/{SOCKET}")
                if found is None:
                    _start(workspace, folder, handle)
                    found = _connected(f"/proc/self/fd/{handle}/{SOCKET}")
        return found
    finally:
        os.close(handle)


def _connected(path: str) -> socket.socket | None:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(path)
    except OSError:
        connection.close()
        return None
    return connection


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    with (folder / LOCK).open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _start(workspace: Path, folder: Path, handle: int) -> None:
    """Start a judge behind a socket that listens at once: callers wait there while it loads torch."""
    socket_file = folder / SOCKET
    socket_file.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with listener, (folder / LOG).open("ab") as log:
        listener.bind(f"/proc/self/fd/{handle}/{SOCKET}")
        socket_file.chmod(0o600)
        listener.listen(64)
        subprocess.Popen(
            own_python.running("pypto_op.judge.resident", str(workspace), str(folder), str(listener.fileno())),
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            pass_fds=[listener.fileno()],
            env={**os.environ, "PYTHONPATH": _packages(), ENV: "0"},
        )


def _packages() -> str:
    """Return PYTHONPATH with this package's folder first, for a process that starts elsewhere."""
    own = str(Path(__file__).resolve().parents[1])
    return os.pathsep.join([own, *filter(None, [os.environ.get("PYTHONPATH")])])
