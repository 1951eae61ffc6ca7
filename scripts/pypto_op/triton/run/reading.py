"""The static check of an implementation, made beside its run: the judge mostly waits there, so the check delays nothing."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pypto_op.triton.static.validate import Reading

_STEP = 0.02
_STACK = 64 * 2**20
"""Bytes: what a parser of nested source needs, whatever this machine gives a thread."""
_PATIENCE = 30.0
"""Seconds that a process that wants to end waits for a check that nobody asked for: it takes less than one, on a free core."""


class Beside:
    """Reads one implementation in a thread of its own; what it finds counts only for the arguments that it was told of.

    Args:
        path: of the implementation.
        policy: file of the static check's policy; None: the built-in one.
    """

    def __init__(self, path: Path, policy: Path | None) -> None:
        self._path, self._policy = path, policy
        self._reader: _Reader | None = None

    def begin(self, scalars: Sequence[bool | str | None]) -> None:
        """Begin to read, unless that has begun.

        Args:
            scalars: which arguments of forward are numbers or strings, as far as it is known.
        """
        if self._reader is None:
            self._reader = self._started(scalars)

    def reading(self, scalars: Sequence[bool | str | None]) -> Reading:
        """Return what the static check says; the file is read again where other arguments were told of.

        Raises:
            Exception: what the check raised.
        """
        if self._reader is None or self._reader.scalars != tuple(scalars):
            self._reader = self._started(scalars)
        while self._reader.is_alive():
            self._reader.join(_STEP)  # in steps, so that a deadline can end the wait
        if self._reader.found is None:
            raise self._reader.error or RuntimeError("the static check ended without a word")
        return self._reader.found

    def _started(self, scalars: Sequence[bool | str | None]) -> _Reader:
        reader = _Reader(self._path, self._policy, tuple(scalars))
        usual = threading.stack_size(_STACK)
        try:
            reader.start()
        finally:
            threading.stack_size(usual)
        return reader


class _Reader(threading.Thread):
    def __init__(self, path: Path, policy: Path | None, scalars: tuple[bool | str | None, ...]) -> None:
        super().__init__(name="static check", daemon=True)
        self._path, self._policy, self.scalars = path, policy, scalars
        self.found: Reading | None = None
        self.error: Exception | None = None

    def run(self) -> None:
        """Read the file; the modules that do so are loaded here, too."""
        try:
            from pypto_op.triton.static.policy import load_policy
            from pypto_op.triton.static.validate import read_file

            self.found = read_file(self._path, load_policy(self._policy), self.scalars)
        except Exception as error:  # noqa: BLE001  (raised again where the reading is asked for)
            self.error = error


@atexit.register
def _let_end() -> None:
    """Wait for checks whose answer nobody needed: CPython may abort where a thread runs on, and 134 is no verdict's exit code."""
    for thread in threading.enumerate():
        if isinstance(thread, _Reader):
            thread.join(_PATIENCE)
