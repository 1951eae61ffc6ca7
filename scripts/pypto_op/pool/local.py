"""Hands of this machine: threads for its cores, and a process for each of its devices."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Mapping
from queue import SimpleQueue

import psutil

from pypto_op import own_python
from pypto_op.pool import servant
from pypto_op.pool.line import Line


class Child:
    """A servant in a process of its own; it ends when the socket does.

    Args:
        variables: for its environment, beside this process's.
    """

    def __init__(self, variables: Mapping[str, str]) -> None:
        ours, theirs = socket.socketpair()
        environment = {**os.environ, **variables, "PYTHONSAFEPATH": "1"}
        words = own_python.running("pypto_op.pool.servant", str(theirs.fileno()))
        quiet = subprocess.DEVNULL
        with theirs:
            self._process = subprocess.Popen(words, pass_fds=(theirs.fileno(),), env=environment, stdin=quiet, stdout=quiet)
        self._line = Line(ours)
        self._heard: SimpleQueue[tuple[str, bytes]] = SimpleQueue()
        threading.Thread(target=self._listen, name="pool", daemon=True).start()

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    def say(self, what: str, data: bytes) -> None:
        """Send one message."""
        with contextlib.suppress(OSError):  # heard of as LOST
            self._line.say(what, data)

    def heard(self) -> SimpleQueue[tuple[str, bytes]]:
        """Return where its answers arrive."""
        return self._heard

    def kill(self) -> None:
        """End the process and all below it; harmless when called twice."""
        self._line.close()
        with contextlib.suppress(psutil.NoSuchProcess):
            root = psutil.Process(self._process.pid)
            for process in [*root.children(recursive=True), root]:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.send_signal(signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):  # one that the kernel cannot end is left to its device
            self._process.wait(timeout=10)

    def _listen(self) -> None:
        with contextlib.suppress(EOFError):
            while True:
                what, data = self._line.hear()
                self._heard.put((what, data))
        self._heard.put((servant.LOST, b"its process ended"))
