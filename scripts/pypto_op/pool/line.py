"""Messages between a pool and a process of its own: pickled tuples on a socket that nobody else holds."""

from __future__ import annotations

import contextlib
import pickle
import socket
import threading
from typing import Any

_LENGTH = 8


class Line:
    """One end of a socket; several threads may say, one hears."""

    def __init__(self, end: socket.socket) -> None:
        self._end, self._lock = end, threading.Lock()

    def say(self, *message: Any) -> None:
        """Send one message; raise OSError where the other end is gone."""
        data = pickle.dumps(message, protocol=5)
        with self._lock:
            self._end.sendall(len(data).to_bytes(_LENGTH, "big") + data)

    def hear(self) -> tuple[Any, ...]:
        """Wait for the next message; raise EOFError where the other end is gone."""
        length = int.from_bytes(self._exactly(_LENGTH), "big")
        message: tuple[Any, ...] = pickle.loads(self._exactly(length))
        return message

    def close(self) -> None:
        """Hang up: whoever waits at either end gets EOFError."""
        with contextlib.suppress(OSError):
            self._end.shutdown(socket.SHUT_RDWR)
        self._end.close()

    def _exactly(self, count: int) -> bytearray:
        data = bytearray(count)
        view, got = memoryview(data), 0
        while got < count:
            try:
                more = self._end.recv_into(view[got:])
            except OSError:
                more = 0
            if not more:
                raise EOFError
            got += more
        return data
