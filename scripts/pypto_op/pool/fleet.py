"""A Ray cluster as this process sees it: a child that speaks Ray (`bridge`), and a channel for each worker.

Ray ends the process that speaks it when the head is lost, and writes to its streams. So that process is not this one.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib import util
from queue import Empty, SimpleQueue
from typing import Any

from pypto_op import own_python
from pypto_op.errors import InfraError
from pypto_op.pool import servant
from pypto_op.pool.address import Address
from pypto_op.pool.crew import HandLost
from pypto_op.pool.line import Line

JOIN_SECONDS = 90.0
"""How long a cluster may take to let this machine in; Ray tries a dead address for minutes."""
REACH_SECONDS = 5.0

_INSTALL = "install the extra fleet, in a checkout with `pip install -e '.[fleet]'`"
_START = "on the head: ray start --head; on this machine and each other one: ray start --address={head}"


def look(address: Address) -> None:
    """See that Ray is installed and somebody listens at the head; seconds, where joining takes longer.

    Raises:
        InfraError: it is not, or nobody does.
    """
    if util.find_spec("ray") is None:
        raise InfraError(f"--pool {address.text} needs Ray, which is not installed", remedy=_INSTALL)
    if address.host:
        _reach(address)


@dataclass(frozen=True)
class Place:
    """Where a hand may work."""

    name: str  # for people
    connect: Any  # starts a worker and returns the way to it


class Fleet:
    """The cluster at an address.

    Args:
        address: its head, or a Ray of this machine's own.
        size: with a Ray of its own: how many workers it shall have room for.

    Raises:
        InfraError: Ray is not installed, nobody answers at the address, or the versions differ.
    """

    def __init__(self, address: Address, size: int) -> None:
        look(address)
        self._address = address
        self._lock = threading.Lock()
        self._channels: dict[int, SimpleQueue[tuple[str, bytes]]] = {}
        self._next, self._lost = 0, ""
        self._told: SimpleQueue[tuple[str, Any]] = SimpleQueue()
        for variables in (
            {},
            {"RAY_AUTH_MODE": "token"},
        ):  # a cluster without authentication starts no actor for who sends a token
            self._start({**asdict(address), "size": size, "head": address.head}, variables)
            what, self.resources = self._await(JOIN_SECONDS)
            if what == "joined":
                break
            self._listener.join(timeout=30)  # the bridge ends by itself
            self.close()
            self._lost, self._told = "", SimpleQueue()
            if self.resources != servant.ASKS_FOR_TOKEN or "RAY_AUTH_MODE" in os.environ:
                break
        if what != "joined":
            raise InfraError(_in_words(address, str(self.resources)), remedy=_remedy(address, str(self.resources)))

    def places(self, size: int, *, npu: bool) -> Sequence[Place]:
        """Return where at most `size` hands may work: a device each where the cluster has devices and one is wanted, else a core.

        Raises:
            InfraError: no host of the cluster can run a worker.
        """
        kind = "NPU" if npu and self.resources.get("NPU") else "CPU"
        room = int(self.resources.get(kind, 0))
        if not room:
            labels = " with such labels" if self._address.labels else ""
            raise InfraError(f"the cluster at {self._name()} has no core or device on a host{labels}", remedy="add hosts to it")
        return [Place(f"worker {number}", partial(self._connect, kind)) for number in range(1, min(size, room) + 1)]

    def close(self) -> None:
        """Leave; a Ray of this machine's own ends. Harmless when called twice."""
        self._line.close()
        try:
            self._bridge.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self._bridge.kill()
            self._bridge.wait()
        self._log.close()

    # -- the bridge -----------------------------------------------------------------------------------------

    def _start(self, document: dict[str, Any], variables: Mapping[str, str]) -> None:
        import json

        ours, theirs = socket.socketpair()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  # what Ray says, for when it dies
        words = own_python.running("pypto_op.pool.bridge", str(theirs.fileno()), json.dumps(document))
        environment = {
            **os.environ,
            **variables,
            "PYTHONSAFEPATH": "1",
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_prestart_worker_first_driver": "0",
            "RAY_worker_niceness": "0",  # else a worker of ray://local yields to whatever else this machine does
        }
        if not self._address.host or self._address.host in ("localhost", "127.0.0.1", "[::1]"):
            environment["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # Ray takes the loopback for an outer address otherwise
        with theirs:
            self._bridge = subprocess.Popen(
                words, pass_fds=(theirs.fileno(),), env=environment,
                stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log, start_new_session=True,
            )  # fmt: skip
        self._line = Line(ours)
        self._listener = threading.Thread(target=self._listen, name="fleet", daemon=True)
        self._listener.start()

    def _await(self, seconds: float) -> tuple[str, Any]:
        try:
            return self._told.get(timeout=seconds)
        except Empty:
            self._bridge.kill()
            return "failed", f"it did not answer within {seconds:g} s"

    def _listen(self) -> None:
        with contextlib.suppress(EOFError):
            while True:
                number, what, data = self._line.hear()
                if number is None:
                    self._told.put((what, data))
                    if what == "lost":
                        self._lost = str(data)
                elif (queue := self._channels.get(number)) is not None:
                    queue.put((what, data))
        self._lost = self._lost or self._last_words() or "its connection ended"
        self._told.put(("failed", self._lost))
        error = servant.failure(
            InfraError(
                f"the Ray cluster at {self._name()} was lost: {self._lost}",
                remedy="start it again, then run this again; `mutate --resume` goes on where it stopped",
            )
        )
        with self._lock:
            for queue in self._channels.values():
                queue.put((servant.FAILED, error))

    def _last_words(self) -> str:
        """Return the last line that tells something of what Ray wrote before it died."""
        try:
            self._log.seek(0)
            text = self._log.read().decode(errors="replace")
        except (OSError, ValueError):
            return ""
        lines = [re.sub(r"\x1b\[[0-9;]*m", "", line).strip() for line in text.splitlines()]
        told = [line for line in lines if line and not line.startswith(("*", "@", "-", "["))]
        return told[-1][:300] if told else ""

    def _connect(self, kind: str) -> _Channel:
        with self._lock:
            if self._lost:
                raise HandLost(self._lost)
            self._next += 1
            number = self._next
            queue: SimpleQueue[tuple[str, bytes]] = SimpleQueue()
            self._channels[number] = queue
        channel = _Channel(self._line, number, queue)
        channel.say("start", kind.encode())
        return channel

    def _name(self) -> str:
        return self._address.head if self._address.host else "this machine"


class _Channel:
    """The way to one actor."""

    def __init__(self, line: Line, number: int, queue: SimpleQueue[tuple[str, bytes]]) -> None:
        self._line, self._number, self._queue = line, number, queue

    def say(self, what: str, data: bytes) -> None:
        """Send; where the bridge is gone every channel hears of it."""
        with contextlib.suppress(OSError):
            self._line.say(self._number, what, data)

    def heard(self) -> SimpleQueue[tuple[str, bytes]]:
        """Return where its answers arrive."""
        return self._queue

    def kill(self) -> None:
        """End the actor; harmless when called twice."""
        self.say("kill", b"")


def _reach(address: Address) -> None:
    """Raise InfraError where nobody listens: Ray itself would try for minutes."""
    try:
        socket.create_connection((address.host.strip("[]"), address.port), timeout=REACH_SECONDS).close()
    except OSError as error:
        why = error.strerror or "no answer"
        raise InfraError(f"no Ray cluster answers at {address.head} ({why})", remedy=_START.format(head=address.head)) from None


def _in_words(address: Address, why: str) -> str:
    name = address.head if address.host else "this machine"
    return f"the Ray cluster at {name} cannot be joined: {why}"


def _remedy(address: Address, why: str) -> str:
    if why == servant.ASKS_FOR_TOKEN:
        return "bring the head's ~/.ray/auth_token here, or set RAY_AUTH_TOKEN"
    if "ersion mismatch" in why:
        return "install the cluster's versions of Ray and Python here, or this machine's there"
    return _START.format(head=address.head) if address.host else "run `ray status`, free memory, or use --pool local"
