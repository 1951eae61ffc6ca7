"""The resident judge of a workspace: loads torch once, and runs each command that it is asked for in a fork of itself.

`python -m pypto_op.judge.resident WORKSPACE FOLDER LISTENER`, started by `pypto_op.resident`. It keeps the processes that
workers are forked from (`backends.launcher.Zygote`), and hands each fork a connection of its own to them. Candidates run where
they always ran: in their enclosure, below that process. It has one thread, runs no command itself, and answers nobody below
itself. It ends when it is idle, when its code changes, and when its workspace, its socket or its owner is gone.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import resource
import select
import signal
import socket
import struct
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from pypto_op import name_space, resident
from pypto_op.backends import launcher, processes, sim
from pypto_op.errors import PyptoOpError

_IDLE_SECONDS = 600.0
_LOOK_SECONDS = 2.0
_READ_SECONDS = 5.0
_MOST_KIB = 2 << 20
_STREAMS = 3
PRELOADED = (
    "pypto_op.judge.commands",
    "pypto_op.judge.reporting.display",
    "pypto_op.judge.verify",
    "pypto_op.judge.other_checks",
    "pypto_op.judge.self_test.selftest",
    "pypto_op.generators.commands",
    "pypto_op.generators.evaluation",
    "pypto_op.perf.commands",
)
"""What the served commands import, by name: some of it stands above the judge."""


@dataclass
class _Command:
    """A command at work: its fork, its caller, and the fork's own line to here."""

    pid: int
    caller: socket.socket
    leash: socket.socket


class Resident:
    """The loop."""

    def __init__(self, workspace: Path, folder: Path, listener: socket.socket) -> None:
        self._workspace, self._socket, self._listener = workspace, folder / resident.SOCKET, listener
        self._inode = self._socket.stat().st_ino
        self._owner = _owner()
        self._idle = float(os.environ.get(resident.IDLE_ENV) or _IDLE_SECONDS)
        self._commands: list[_Command] = []
        self._last = time.monotonic()
        self._ended = False
        self._woken, waker = socket.socketpair()
        for end in (self._woken, waker):
            end.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
        self._waker = waker

    def load(self) -> None:
        """Load what the commands need, and start what workers are forked from."""
        with self._ending_early():
            self._stamp = _stamp()
            with contextlib.suppress(PyptoOpError):
                sim.warm_up()
            gc.disable()
            for name in PRELOADED:
                importlib.import_module(name)
        gc.collect()
        gc.freeze()
        gc.enable()

    def run(self) -> None:
        """Serve until it is time to end."""
        while not self._ended and (self._commands or self._wanted()):
            lines = [end for command in self._commands for end in (command.caller, command.leash)]
            ready, _, _ = select.select([self._listener, self._woken, *lines], [], [], _LOOK_SECONDS)
            if self._woken in ready:
                with contextlib.suppress(BlockingIOError):
                    self._woken.recv(4096)
            self._collect()
            for command in list(self._commands):
                if command.leash in ready:
                    self._give_zygote(command)
                if command.caller in ready:
                    self._hear(command)
            if self._listener in ready:
                self._take(self._listener.accept()[0])

    def close(self) -> None:
        """End everything that runs, and leave the place to another."""
        if self._in_place():
            self._socket.unlink(missing_ok=True)
        for command in self._commands:
            processes.kill_tree(command.pid)
        launcher.close_shared()

    # -- when to end -------------------------------------------------------------------------------------------------

    def _wanted(self) -> bool:
        return (
            time.monotonic() - self._last < self._idle
            and self._has_reason()
            and resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < _MOST_KIB
        )

    def _has_reason(self) -> bool:
        return self._in_place() and self._workspace.is_dir() and not (self._owner and processes.is_gone(self._owner))

    @contextlib.contextmanager
    def _ending_early(self) -> Iterator[None]:
        """While it loads, which takes a minute on a busy machine, look whether anybody is left who wants it."""

        def look(number: int, frame: object) -> None:
            if self._has_reason():
                return
            for pid in launcher.living_zygotes():
                processes.kill_tree(pid)
            if self._in_place():
                self._socket.unlink(missing_ok=True)
            os._exit(0)

        before = signal.signal(signal.SIGALRM, look)
        signal.siginterrupt(signal.SIGALRM, False)
        signal.setitimer(signal.ITIMER_REAL, _LOOK_SECONDS, _LOOK_SECONDS)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)

    def _in_place(self) -> bool:
        try:
            return self._socket.stat().st_ino == self._inode
        except OSError:
            return False

    # -- callers -----------------------------------------------------------------------------------------------------

    def _take(self, caller: socket.socket) -> None:
        """Read what a caller wants, and begin it; a caller that may not ask, or does not say, is left."""
        descriptors: list[int] = []
        try:
            caller.settimeout(_READ_SECONDS)
            if not _may_ask(caller):
                caller.close()
                return
            message, descriptors = resident.receive(caller, _STREAMS)
            caller.settimeout(None)
            if message is None:
                caller.close()
            elif message.get("end"):
                self._ended = True
                self.close()
                caller.close()
            elif _stamp() != self._stamp:
                self._ended = not self._commands
                self._socket.unlink(missing_ok=True)
                caller.close()
            elif len(descriptors) == _STREAMS:
                self._begin(caller, message, descriptors)
            else:
                caller.close()
        except (OSError, ValueError):
            caller.close()
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def _begin(self, caller: socket.socket, message: dict[str, Any], descriptors: list[int]) -> None:
        ours, theirs = socket.socketpair()
        resident.send(caller, {"begun": True}, [])
        pid = os.fork()
        if pid == 0:
            self._become(message, descriptors, theirs, [ours, caller])
        theirs.close()
        self._commands.append(_Command(pid, caller, ours))
        self._last = time.monotonic()

    def _become(
        self, message: dict[str, Any], descriptors: list[int], leash: socket.socket, others: list[socket.socket]
    ) -> NoReturn:
        """In the fork: let go of what is the resident's, then be the command."""
        code = 3
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.setsid()
            for end in [self._listener, self._woken, self._waker, *others]:
                end.close()
            for command in self._commands:
                command.caller.close()
                command.leash.close()
            launcher.forget_shared()
            code = _run_command(message, descriptors, leash)
        finally:
            os._exit(code)

    def _hear(self, command: _Command) -> None:
        """Pass an interruption on; end the command whose caller is gone."""
        try:
            said = command.caller.recv(16)
        except OSError:
            said = b""
        if said:
            processes.kill(command.pid, signal.SIGINT)
        else:
            processes.kill_tree(command.pid)

    def _collect(self) -> None:
        """Tell the callers of commands that ended how they did."""
        for command in list(self._commands):
            try:
                pid, status = os.waitpid(command.pid, os.WNOHANG)
            except ChildProcessError:
                pid, status = command.pid, 0x0300
            if pid == 0:
                continue
            code = os.waitstatus_to_exitcode(status)
            with contextlib.suppress(OSError):
                resident.send(command.caller, {"code": code if code >= 0 else 128 - code}, [])
            command.caller.close()
            command.leash.close()
            self._commands.remove(command)
            self._last = time.monotonic()

    def _give_zygote(self, command: _Command) -> None:
        """Give a fork a connection to the process that its workers are forked from."""
        try:
            message, _ = resident.receive(command.leash, 0)
            if message is None:
                return
            kept = launcher.shared_zygote(message["zygote"], message["variables"])
            connection = kept.connect()
            with connection:
                resident.send(command.leash, {"pid": kept.pid}, [connection.fileno()])
        except (OSError, PyptoOpError):
            with contextlib.suppress(OSError):
                resident.send(command.leash, {}, [])


def _run_command(message: dict[str, Any], descriptors: list[int], leash: socket.socket) -> int:
    """Run the command of this fork as a process of its own would; return its exit code."""
    import atexit

    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.chdir(message["cwd"])
    os.environ.clear()
    os.environ.update(message["environment"])
    for name, number in (("out", 1), ("err", 2)):
        encoding, errors = message["streams"][name]
        stream = os.fdopen(number, "w", encoding=encoding, errors=errors, closefd=False)
        stream.reconfigure(line_buffering=number == 2 or stream.isatty())
        setattr(sys, f"std{name}", stream)
    sys.stdin = os.fdopen(0, "r", closefd=False)
    sys.argv = ["pypto-op", *message["words"]]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    resident.leash = leash
    code: Any = 0
    try:
        importlib.import_module("pypto_op.cli").main(message["words"])
    except SystemExit as end:
        code = end.code
    atexit._run_exitfuncs()
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    return code if isinstance(code, int) else 0 if code is None else 1


def _may_ask(caller: socket.socket) -> bool:
    """Whether the other end is this account's, and no process that this one started: no candidate has a say here."""
    pid, user, _ = struct.unpack("3i", caller.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
    return user == os.geteuid() and pid != 0 and os.getpid() not in _above(pid)


def _above(pid: int) -> list[int]:
    """Return a process and those above it."""
    found = []
    while pid > 0:
        found.append(pid)
        try:
            fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:
            break
        pid = int(fields[1])
    return found


def _stamp() -> dict[str, int]:
    """Return when each file of the bundle's packages, and the list of installed packages, changed last."""
    import torch

    package = Path(launcher.__file__).resolve().parents[1]
    roots = (package, package.parents[1] / "lint" / "pypto_op_lint", package.parent / "pypto_op_lint")
    files = [path for root in roots for kind in ("*.py", "*.yaml", "*.json") for path in root.rglob(kind)]
    return {str(path): path.stat().st_mtime_ns for path in [*files, Path(torch.__file__).parents[1]]}


def _owner() -> int:
    """Return the process that this judge ends with; 0 where none is named, or one that cannot be seen from here."""
    number, _, space = os.environ.get(resident.OWNER_ENV, "").partition("@")
    return (name_space.number_here(int(number), int(space or name_space.here())) or 0) if number else 0


def main() -> None:
    """Load, then serve."""
    workspace, folder, listener = Path(sys.argv[1]), Path(sys.argv[2]), socket.socket(fileno=int(sys.argv[3]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    judge = Resident(workspace, folder, listener)
    judge.load()
    try:
        judge.run()
    finally:
        judge.close()


if __name__ == "__main__":
    main()
