"""Keeps the beginning and the end of what a process prints, however much it prints."""

from __future__ import annotations

import os

_CHUNK = 65536
_CHUNKS_AT_ONCE = 64


class Capture:
    """One stream of a worker, read without waiting.

    Args:
        descriptor: read end of a pipe, non-blocking.
        limit: bytes to keep of one case; three quarters of them from the beginning.
    """

    def __init__(self, descriptor: int, limit: int) -> None:
        self._descriptor = descriptor
        self._head_limit = max(1, limit * 3 // 4)
        self._tail_limit = max(1, limit - self._head_limit)
        self.open = True
        self._head, self._tail, self._total = bytearray(), bytearray(), 0

    def fileno(self) -> int:
        """Return the descriptor, for `select`."""
        return self._descriptor

    def pump(self) -> None:
        """Read what is there; a flood is left for the next call, so that nobody waits for its end."""
        for _ in range(_CHUNKS_AT_ONCE):
            try:
                data = os.read(self._descriptor, _CHUNK)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                self.open = False
                return
            self._add(data)

    def take(self) -> str:
        """Return what was kept since the last call, and begin anew."""
        self.pump()
        text = self.peek()
        self._head, self._tail, self._total = bytearray(), bytearray(), 0
        return text

    def peek(self) -> str:
        """Return what was kept since the last `take`."""
        kept = len(self._head) + len(self._tail)
        dropped = self._total - kept
        middle = f"\n... {dropped} bytes left out ...\n" if dropped else ""
        return self._head.decode(errors="replace") + middle + self._tail.decode(errors="replace")

    def _add(self, data: bytes) -> None:
        self._total += len(data)
        room = self._head_limit - len(self._head)
        self._head += data[:room]
        self._tail += data[max(0, room) :]
        if len(self._tail) > self._tail_limit:
            del self._tail[: len(self._tail) - self._tail_limit]
