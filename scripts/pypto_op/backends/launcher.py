"""Starts workers: forks of a warm zygote for the simulator, processes of their own for a device."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import select
import socket
import subprocess
import tempfile
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pypto_op
from pypto_op import own_python, resident
from pypto_op.backends import processes
from pypto_op.errors import InfraError

_START_SECONDS = 120.0
_ANSWER_SECONDS = 30.0
_LONGEST_MESSAGE = 64 * 1024
_KEPT = ("LANG", "LC_ALL", "LD_LIBRARY_PATH", "SYSTEMROOT", "TZ")
"""Variables of the judge that a worker keeps; everything else (keys, tokens, proxies) stays outside."""


@dataclass
class Launched:
    """A session's processes, seen from the judge."""

    warden: int  # process that encloses the worker; to end it is to end them all
    enclosed: bool  # the warden's only child is the first process of a space of its own
    channel: socket.socket  # socket to the worker
    stdout: int  # read end of the worker's standard output
    stderr: int  # read end of its standard error
    report: int  # read end on which the warden tells how the worker ended
    process: subprocess.Popen[bytes] | None = None  # set when the warden is a child of this process and must be collected
    _ending: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def worker(self) -> int | None:
        """Return the worker's process id, if it runs."""
        below = processes.children_of(self.warden)
        if self.enclosed:
            below = processes.children_of(below[0]) if below else []
        return below[0] if below else None

    def end(self) -> None:
        """End every process of the session and close what belongs to it; only the first of several calls does anything.

        Two threads may give a session up. A descriptor that is closed twice is by then somebody else's.
        """
        if not self._ending.acquire(blocking=False):
            return
        # Before it ends: the kernel does not hand up the time of what is killed with its process space.
        _spent.append(sum(processes.cpu_seconds(one) for one in (self.warden, *processes.tree_below(self.warden))))
        if self.enclosed:
            processes.kill_tree(self.warden)
        else:
            _ask_then_kill(self.warden)
        if self.process is not None:
            before = _of_children()
            self.process.wait()
            _handed_up.append(_of_children() - before)
        self.channel.close()
        for descriptor in (self.stdout, self.stderr, self.report):
            with contextlib.suppress(OSError):
                os.close(descriptor)


class _Ends:
    """The far ends of a session's connections, until they are handed over."""

    def __init__(self) -> None:
        self.channel, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._far_channel = far
        (self.stdout, out), (self.stderr, err), (self.report, report) = os.pipe(), os.pipe(), os.pipe()
        self.far = (far.fileno(), out, err, report)
        for descriptor in (self.stdout, self.stderr, self.report):
            os.set_blocking(descriptor, False)

    def close_far(self) -> None:
        self._far_channel.close()
        for descriptor in self.far[1:]:
            os.close(descriptor)


class Zygote:
    """The warm process that workers are forked from; started at first use, ended with this process."""

    def __init__(self, document: dict[str, Any], variables: dict[str, str]) -> None:
        self._lock = threading.Lock()
        self._owner = os.getpid()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  (closed with the zygote)
        self._control, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._process = _start("zygote", document, (far.fileno(),), variables, self._log)
        far.close()
        self._answer: dict[str, Any] | None = None

    def connect(self) -> socket.socket:
        """Return a further judge's connection; what it starts ends with it.

        Raises:
            OSError: the process is gone.
        """
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            socket.send_fds(self._control, [json.dumps({"judge": True}).encode()], [theirs.fileno()])
        return ours

    def forget(self) -> None:
        """Let go of the connection in a fork: it is the parent's."""
        self._control.close()

    @property
    def namespaces(self) -> bool:
        """Whether sessions are enclosed in name spaces here; waits until the zygote is warm."""
        return bool(self._ready()["namespaces"])

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it can still be used by this process."""
        return self._owner == os.getpid() and self._process.poll() is None

    def start(self, document: dict[str, Any]) -> Launched:
        """Start a session.

        Raises:
            InfraError: the zygote cannot serve.
        """
        ready = self._ready()
        ends = _Ends()
        document = {**document, "namespaces": bool(ready["namespaces"]) and bool(document["enclose"])}
        try:
            with self._lock:
                socket.send_fds(self._control, [json.dumps(document).encode()], list(ends.far))
                warden = int(self._receive(_ANSWER_SECONDS)["warden"])
        except OSError as error:
            raise InfraError(f"the process that workers are forked from is gone ({error})") from error
        finally:
            ends.close_far()
        return Launched(warden, document["namespaces"], ends.channel, ends.stdout, ends.stderr, ends.report)

    def close(self) -> None:
        """End the zygote and everything below it."""
        if self._owner != os.getpid():
            return
        self._control.close()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            processes.kill_tree(self._process.pid)
            self._process.wait()
        self._log.close()

    def _ready(self) -> dict[str, Any]:
        with self._lock:
            if self._answer is None:
                self._answer = self._receive(_START_SECONDS)
        if "error" in self._answer:
            raise InfraError(f"pypto cannot be loaded: {self._answer['error']}", remedy="run `pypto-op doctor`")
        return self._answer

    def _receive(self, seconds: float) -> dict[str, Any]:
        if not select.select([self._control], [], [], seconds)[0]:
            raise InfraError(
                f"the process that workers are forked from does not answer within {seconds:.0f} s",
                remedy="run it again when other programs leave this machine more of its processor",
            )
        data = self._control.recv(_LONGEST_MESSAGE)
        if not data:
            raise InfraError(f"the process that workers are forked from ended: {self._last_words()}")
        answer: dict[str, Any] = json.loads(data)
        return answer

    def _last_words(self) -> str:
        self._log.seek(0)
        lines = self._log.read().decode(errors="replace").strip().splitlines()
        return lines[-1][:300] if lines else f"exit code {self._process.poll()}"


class KeptZygote(Zygote):
    """One that a resident judge keeps, behind a connection of this process's own."""

    def __init__(self, pid: int, control: socket.socket) -> None:
        self._lock = threading.Lock()
        self._owner, self._pid, self._control = os.getpid(), pid, control
        self._answer = None

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._pid

    @property
    def alive(self) -> bool:
        """Whether it can still be used by this process."""
        return self._owner == os.getpid() and not processes.is_gone(self._pid)

    def close(self) -> None:
        """Let go of it; what this process started there ends."""
        self._control.close()

    def _last_words(self) -> str:
        return "it was kept by the resident judge"


_spent: list[float] = []
"""Processor time of each session that has ended."""

_handed_up: list[float] = []
"""What of it the kernel counts for this process's children, too: of sessions that were processes of their own."""

_shared: dict[str, Zygote] = {}
_shared_lock = threading.Lock()


def shared_zygote(document: dict[str, Any], variables: dict[str, str]) -> Zygote:
    """Return this process's zygote for `document`, starting one when there is none that lives."""
    key = json.dumps([document, variables], sort_keys=True)
    with _shared_lock:
        zygote = _shared.get(key)
        if zygote is None or not zygote.alive:
            if zygote is None and not _shared:
                atexit.register(close_shared)
            kept = resident.zygote(document, variables)
            zygote = _shared[key] = KeptZygote(*kept) if kept else Zygote(document, variables)
        return zygote


def living() -> list[Zygote]:
    """Return the zygotes of this process that live."""
    return [zygote for zygote in _shared.values() if zygote.alive]


def living_zygotes() -> list[int]:
    """Return their process ids."""
    return [zygote.pid for zygote in living()]


def cpu_seconds(*, children: bool = False) -> float:
    """Return the processor time of this process, its zygotes and its ended sessions: a figure that load hardly changes.

    Args:
        children: with that of every other child that was waited for.
    """
    own = (os.getpid(), *living_zygotes())
    known = sum(_spent) + sum(processes.cpu_seconds(one, collected=False) for one in own)
    return known + (_of_children() - sum(_handed_up) if children else 0.0)


def _of_children() -> float:
    return sum(os.times()[2:4])


def start_alone(document: dict[str, Any], variables: dict[str, str]) -> Launched:
    """Start a session in a process of its own, for devices whose drivers do not survive a fork."""
    ends = _Ends()
    with tempfile.TemporaryFile() as log:
        process = _start("session", {**document, "namespaces": False}, ends.far, variables, log)
    ends.close_far()
    return Launched(process.pid, False, ends.channel, ends.stdout, ends.stderr, ends.report, process)


def _start(
    kind: str, document: dict[str, Any], far: tuple[int, ...], variables: dict[str, str], log: Any
) -> subprocess.Popen[bytes]:
    package = str(Path(pypto_op.__file__).resolve().parents[1])
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": _home(),
        "PYTHONSAFEPATH": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        "PYTHONIOENCODING": "utf-8:backslashreplace",
        # One thread each: workers run beside one another, the zygote must have no second thread when it forks,
        # and the order of a sum must not depend on the machine.
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        **kept,
        **variables,
        "PYTHONPATH": ":".join(filter(None, (package, variables.get("PYTHONPATH")))),
    }
    command = own_python.running("pypto_op.backends.worker", kind, json.dumps(document), *map(str, far), obeying=True)
    return subprocess.Popen(command, env=environment, cwd="/", stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=far)


def _home() -> str:
    """Return where pypto may make its folder while it is imported: it ends the process where it cannot. A session has its own."""
    home = os.environ.get("HOME", "")
    return home if os.path.isabs(home) and os.access(home, os.W_OK) else tempfile.gettempdir()  # noqa: PTH117


def _ask_then_kill(warden: int) -> None:
    """Let the warden end what is below it; when it does not within a few seconds, end the tree from here."""
    import signal
    import time

    processes.kill(warden, signal.SIGTERM)
    deadline = time.monotonic() + 6.0
    while not processes.is_gone(warden) and time.monotonic() < deadline:
        time.sleep(0.005)
    processes.kill_tree(warden)


def close_shared() -> None:
    """End the zygotes of this process."""
    for zygote in _shared.values():
        zygote.close()
    _shared.clear()


def forget_shared() -> None:
    """In a fork: let go of the parent's zygotes."""
    for zygote in _shared.values():
        zygote.forget()
    _shared.clear()
