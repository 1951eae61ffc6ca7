"""The resident linter: one process per workspace, started by the first hook, gone when idle.

It answers the question that its starter hands it (descriptor 3), then, if no other server holds the
workspace, it listens on a socket in the private folder. It ends when it has been idle, when the code it runs
has changed, when its socket is no longer its own, when its workspace is gone, or when it has grown too big. A
client that meets none of this starts another.

Run as `python -m pypto_op_lint.server WORKSPACE ROOT SOCKET_FOLDER DATA_FOLDER`; the folders may be empty.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import importlib
import importlib.util
import os
import resource
import select
import shutil
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

from pypto_op_lint import wire

_FIRST_CONNECTION = 3
_OLDEST = (3, 10)
_IDLE_SECONDS = 1200.0
_READ_SECONDS = 2.0
_REQUEST_SECONDS = 25
_LOOK_SECONDS = 15.0
_MAX_KIB = 1536 << 10
LOCK_FILE = "server.lock"
PID_FILE = "server.pid"


class CodeStamp:
    """Recognises that the bundle's code has changed since it was loaded."""

    def __init__(self, root: str) -> None:
        self.root = root.rstrip("/") + "/"
        self.loaded: dict[str, int] = {}
        self.package = Path(__file__).resolve().parent
        self.tree = self._tree()

    def _tree(self) -> dict[str, int]:
        """Modification times of the linter's own files: rules that were added count as changed code too."""
        found = {}
        for folder, folders, files in os.walk(self.package):
            folders[:] = [name for name in folders if name != "__pycache__"]
            for name in files:
                if name.endswith((".py", ".yaml", ".json")):
                    path = os.path.join(folder, name)
                    found[path] = os.stat(path).st_mtime_ns
        return found

    def is_stale(self) -> bool:
        """Say whether a file changed, came or went since it was first seen."""
        try:
            for module in list(sys.modules.values()):
                path = getattr(module, "__file__", None) or ""
                if path.startswith(self.root) and path not in self.tree:
                    now = os.stat(path).st_mtime_ns
                    if self.loaded.setdefault(path, now) != now:
                        return True
            return self._tree() != self.tree
        except OSError:
            return True


def _check_set_up() -> None:
    """Raise ImportError when a part is missing that only some questions need: half a guard would let the rest through."""
    for name in wire.SERVER_NEEDS:
        if importlib.util.find_spec(name) is None:
            raise ImportError(name=name)
    if not Path(sys.executable).with_name("shfmt").is_file() and shutil.which("shfmt") is None:
        raise ImportError(name="shfmt")


class Server:
    """Answers framed questions, one connection at a time."""

    def __init__(self, workspace: str, root: str, data_folder: str, seat: Seat | None) -> None:
        self.workspace = workspace
        self.seat = seat
        self.stamp = CodeStamp(root)
        self.data_folder = Path(data_folder) if data_folder else None
        self.events: Any = None
        self.done = False
        self.retired = False

    def serve_connection(self, connection: socket.socket) -> None:
        """Read one question, send one answer. A caller that dawdles costs two seconds at most."""
        with connection, contextlib.suppress(OSError):
            connection.settimeout(_READ_SECONDS)
            question = _receive(connection)
            if question is None:
                return
            answer = self.answer(question)
            connection.settimeout(_READ_SECONDS)
            connection.sendall(wire.frame(answer))

    def answer(self, question: bytes) -> bytes:
        """Return the payload for a question: an answer (A), start another server (R), or E and why."""
        if self.stamp.is_stale():
            return self._retire()
        try:
            import json

            request = json.loads(question)
            if request.get("protocol") != wire.PROTOCOL or request.get("workspace") != self.workspace:
                return self._retire()
            # Whatever hangs in here (the kernel ends the process; nothing in Python can stop a native
            # parser), the client sees the connection break and asks a fresh server.
            signal.alarm(_REQUEST_SECONDS)
            return bytes(self._events().answer(request))
        except ImportError as error:
            self.done = True
            return f"E{sys.executable} lacks {error.name or error}".encode()
        except Exception as error:
            return self._internal_error(question, error)
        finally:
            signal.alarm(0)
            self.done = self.done or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > _MAX_KIB

    def prepare(self) -> None:
        """Load the linter while nobody waits: the first question is often the guard's, which needs none of it."""
        with contextlib.suppress(Exception):  # a linter that cannot be loaded is told to whoever asks for it
            importlib.import_module("pypto_op_lint.api")
        gc.collect()
        gc.freeze()  # what is loaded by now stays; later collections look at one answer's garbage only

    def _retire(self) -> bytes:
        """Give up this server's seat before the caller is answered, so that the server which the caller starts can take it."""
        if self.seat and not self.retired:
            self.seat.give_up()
        self.done = self.retired = True
        return b"R"

    def _events(self) -> Any:
        if self.events is None:
            _check_set_up()
            from pypto_op_lint.hook_events import HookEvents

            self.events = HookEvents(self.data_folder)
        return self.events

    def _internal_error(self, question: bytes, error: Exception) -> bytes:
        import json
        import traceback

        traceback.print_exc()  # stderr is server.log
        self.events = None
        try:
            request = json.loads(question)
            text = " ".join(f"{type(error).__name__}: {error}".split())[:200]
            return wire.local_answer(request, "internal", text)
        except Exception:
            self.done = True
            return b"Ethe question could not be read"


def _receive(connection: socket.socket) -> bytes | None:
    data, end = b"", time.monotonic() + _READ_SECONDS
    while time.monotonic() < end and len(data) <= wire.MAX_FRAME:
        chunk = connection.recv(1 << 20)
        if not chunk:
            return None
        data += chunk
        payload = wire.unframe(data)
        if payload is not None:
            return payload
    return None


class Seat:
    """The place of a workspace's one server: its lock and its socket, both in the current folder."""

    def __init__(self, lock: int, listener: socket.socket) -> None:
        self.lock = lock
        self.listener = listener
        self.inode = os.stat(wire.SOCKET_NAME).st_ino

    def is_ours(self) -> bool:
        """Say whether clients still find this server behind the socket's name."""
        try:
            return os.stat(wire.SOCKET_NAME).st_ino == self.inode
        except OSError:
            return False

    def give_up(self) -> None:
        """Make room for another server; callers that are waiting find their connection broken."""
        if self.is_ours():
            os.unlink(wire.SOCKET_NAME)
        self.listener.close()
        os.close(self.lock)


def take_seat(folder: str) -> Seat | None:
    """Take the workspace: lock it and listen on its socket; None when another server has it, or none can.

    The working folder becomes `folder`, so that the socket's path stays short.
    """
    try:
        os.chdir(folder)
        lock = os.open(LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        draft = f"{wire.SOCKET_NAME}.{os.getpid()}"
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(draft)
        os.chmod(draft, 0o600)
        listener.listen(64)
        os.replace(draft, wire.SOCKET_NAME)
        Path(PID_FILE).write_text(f"{os.getpid()}\n", encoding="ascii")
        return Seat(lock, listener)
    except OSError:
        return None


def run(workspace: str, root: str, socket_folder: str, data_folder: str) -> None:
    """Answer the first question, then stay for others if this workspace has no server yet. Garbage is collected in between."""
    gc.disable()  # a lint leaves its garbage to a later answer, which then takes three times as long as any other
    seat = take_seat(socket_folder) if socket_folder else None
    server = Server(workspace, root, data_folder, seat)
    server.serve_connection(socket.socket(fileno=_FIRST_CONNECTION))
    if seat is None:
        return
    if not server.done:
        server.prepare()
    idle = float(os.environ.get("PYPTO_OP_SERVER_IDLE", _IDLE_SECONDS))
    last = time.monotonic()
    while not server.done and time.monotonic() - last < idle and seat.is_ours() and os.path.isdir(workspace):
        ready, _, _ = select.select([seat.listener], [], [], min(_LOOK_SECONDS, idle))
        if ready:
            connection, _ = seat.listener.accept()
            server.serve_connection(connection)
            gc.collect()
            last = time.monotonic()
    if not server.retired:
        seat.give_up()


def main() -> None:
    """Check the interpreter, then run."""
    if sys.version_info[:2] < _OLDEST:
        with socket.socket(fileno=_FIRST_CONNECTION) as first:
            first.sendall(wire.frame(f"E{sys.executable} is older than Python 3.10".encode()))
        return
    run(*sys.argv[1:5])


if __name__ == "__main__":
    main()
