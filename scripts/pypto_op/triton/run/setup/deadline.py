"""Ends the judge's own work when the time for everything is used up: comparisons of large outputs have no other limit."""

from __future__ import annotations

import contextlib
import ctypes
import threading
import time
from types import TracebackType


class TimeIsUp(Exception):
    """The time for everything is used up."""


class Deadline:
    """Raises `TimeIsUp` in the thread that entered the block, as soon as Python runs there again after the deadline.

    A call into PyTorch is not broken off: the exception comes when it returns. It comes once; the block's end raises it again
    where something in the block caught it.

    Args:
        at: end of the time, of `time.monotonic`.
    """

    def __init__(self, at: float) -> None:
        self._at = at
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._fired = False
        self._thread = 0

    def __enter__(self) -> Deadline:
        self._thread = threading.get_ident()
        threading.Thread(target=self._watch, name="deadline", daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with self._lock:
            self._ended.set()
        if self._fired:
            if kind is not TimeIsUp:
                with contextlib.suppress(TimeIsUp):  # it may be on its way; taking it back makes CPython 3.11 turn for ever
                    for _ in range(1000):
                        pass
            raise TimeIsUp from error

    def _watch(self) -> None:
        if self._ended.wait(max(0.0, self._at - time.monotonic())):
            return
        with self._lock:
            if not self._ended.is_set():
                self._fired = True
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._thread), ctypes.py_object(TimeIsUp))
