"""What a command is at, said while it says nothing else.

A command that is silent for two seconds says what it does: on a terminal by a bar that is taken away again, elsewhere by
a line on standard error, and from then on at least every ten seconds. Results never go through here.
"""

from __future__ import annotations

import re
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, TextIO

import click

FIRST_SECONDS = 2.0
EVERY_SECONDS = 8.0
"""Less than the ten that are promised: a thread may wake late on a busy machine."""


@dataclass
class _Work:
    """What is being done, since when, and when the reader last heard of it."""

    what: str
    since: float = field(default_factory=time.monotonic)
    heard: float = field(default_factory=time.monotonic)
    told: bool = False
    done: int = 0
    total: int = 0

    def line(self) -> str:
        left = f", {self.total - self.done} of {self.total} left" if self.total else ""
        return f"pypto-op: {self.what}, {time.monotonic() - self.since:.0f} s so far{left}"


_LINE = re.compile(r"pypto-op: (.+), \d+ s so far(?:, \d+ of \d+ left)?")
"""What `_Work.line` makes."""
_lock = threading.Lock()
_stack: list[_Work] = []
_stopped = threading.Event()


@contextmanager
def doing(what: str) -> Iterator[None]:
    """Say `what` from now on, whenever nothing else is said; what was said before comes back at the end."""
    with _lock:
        _stack.append(_Work(what))
    try:
        yield
    finally:
        with _lock:
            _stack.pop()
            if _stack:
                _stack[-1].heard = time.monotonic()


def now(what: str, done: int = 0, total: int = 0) -> None:
    """Change what the innermost work is at, and how far it is.

    Args:
        done: how many of its steps are over.
        total: how many there are; 0 where nobody knows.
    """
    with _lock:
        if _stack:
            _stack[-1].what, _stack[-1].done, _stack[-1].total = what, done, total


def what(line: str) -> str:
    """Return what another command of ours is at, from a line that it said here; "" where the line is another one."""
    found = _LINE.fullmatch(line.strip())
    return found[1] if found else ""


def heard() -> None:
    """Call after a line of progress was printed: the next one of this module is due that much later."""
    with _lock:
        for work in _stack:
            work.heard = time.monotonic()


def hush() -> None:
    """Say nothing more in this command: somebody asked for its result alone."""
    _stopped.set()


@contextmanager
def aloud(what: str) -> Iterator[None]:
    """Watch over a whole command: `what` is said where nothing inside of it says more."""
    _stopped.clear()
    terminal = _Terminal() if sys.stderr.isatty() and sys.stdout.isatty() else None
    watcher = threading.Thread(target=terminal.watch if terminal else _in_lines, name="speaking", daemon=True)
    with doing(what), terminal.wiping() if terminal else nullcontext():
        watcher.start()
        try:
            yield
        finally:
            _stopped.set()
            watcher.join()


def _in_lines() -> None:
    while not _stopped.wait(0.2):
        with _lock:
            work = _stack[-1] if _stack else None
            if work is None or time.monotonic() - work.heard < (EVERY_SECONDS if work.told else FIRST_SECONDS):
                continue
            work.heard, work.told = time.monotonic(), True
            line = work.line()
        click.echo(line, err=True)


_CLEAR = "\r\x1b[2K"


class _Terminal:
    """The line in place, with a bar: wiped off before anything else is printed, and when all is done."""

    def __init__(self) -> None:
        self._stream: TextIO = sys.stderr
        self._shown = False
        self._lock = threading.RLock()

    @contextmanager
    def wiping(self) -> Iterator[None]:
        """Let every write to standard output and error wipe the line first."""
        own = sys.stdout, sys.stderr
        sys.stdout, sys.stderr = _Wiping(own[0], self.wipe), _Wiping(own[1], self.wipe)
        try:
            yield
        finally:
            sys.stdout, sys.stderr = own

    def watch(self) -> None:
        """Show the line while it is due, until the command ends."""
        while not _stopped.wait(0.2):
            with _lock:
                work = _stack[-1] if _stack else None
                due = work is not None and time.monotonic() - work.heard >= FIRST_SECONDS
                text = f"{_bar(work)}{work.line()}" if work is not None and due else ""
            with self._lock:
                if text or self._shown:
                    self._write(_CLEAR + text[: shutil.get_terminal_size().columns - 1])
                self._shown = bool(text)
        with self._lock:
            self._take_away()

    def wipe(self) -> None:
        """Take the line away, since something is printed now; it comes back when nothing more is."""
        heard()
        with self._lock:
            self._take_away()

    def _take_away(self) -> None:
        if self._shown:
            self._write(_CLEAR)
            self._shown = False

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


class _Wiping:
    """A stream that calls `before` ahead of each write."""

    def __init__(self, stream: TextIO, before: Callable[[], None]) -> None:
        self._stream, self._before = stream, before

    def write(self, text: str) -> int:
        self._before()
        return self._stream.write(text)

    def writelines(self, lines: Iterable[str]) -> None:
        self._before()
        self._stream.writelines(lines)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


_WIDTH = 20


def _bar(work: _Work) -> str:
    if not work.total:
        return ""
    full = _WIDTH * work.done // work.total
    return f"[{'#' * full}{'.' * (_WIDTH - full)}] "
