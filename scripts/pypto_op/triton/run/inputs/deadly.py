"""Ways of moving inputs that ended a process of the task; its next process finds them in a file and tries them no more.

A GPU ends whatever a process does after one index beyond a table. Where the CPU cannot say so first (`rehearsed`), one way of
many would end the search among all of them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path


class Deadly:
    """The ways of one task.

    Args:
        folder: outlives its processes, and holds nothing of that name beside.
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder / "deadly_ways.txt"
        self._known = self._file.read_text(encoding="utf-8").splitlines() if self._file.is_file() else []

    def has(self, way: str) -> bool:
        """Whether a process ended while it tried that way."""
        return way in self._known

    @contextlib.contextmanager
    def tried(self, way: str) -> Iterator[None]:
        """Note a way while it is tried; an exception that somebody catches is no end."""
        self._write([*self._known, way])
        try:
            yield
        except Exception:
            self._write(self._known)
            raise
        self._write(self._known)

    def _write(self, ways: list[str]) -> None:
        self._file.write_text("".join(f"{way}\n" for way in ways), encoding="utf-8")
