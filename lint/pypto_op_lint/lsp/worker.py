"""The process that lints for the language server.

It is a process of its own, so that a text on which the native parser dies or hangs costs one answer and not the
editor's server.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import cast

from pypto_op_lint.findings import LintResult

_SECONDS = 20.0


class LinterLost(Exception):
    """The process died or did not answer in time; its message says which, in one sentence."""


class Worker:
    """Lints texts in another process, one at a time; a process that is lost is replaced for the next text.

    Args:
        seconds: how long one text may take.
    """

    def __init__(self, seconds: float = _SECONDS) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._process: multiprocessing.process.BaseProcess | None = None
        self._pipe: Connection | None = None

    def lint(self, path: Path, text: str, unsaved: Mapping[Path, str]) -> LintResult | None:
        """Return what the rules find in `text`; None where `path` is no file that rules look at.

        Args:
            path: where the text will lie.
            text: the text, saved or not.
            unsaved: texts of other files that an editor holds.

        Raises:
            LinterLost: there is no answer.
        """
        with self._lock:
            pipe = self._started()
            try:
                pipe.send((path, text, dict(unsaved)))
                if not pipe.poll(self._seconds):
                    raise LinterLost(f"the linter gave no answer in {self._seconds:g} s")
                answer = pipe.recv()
            except (OSError, EOFError):
                self._stop()
                raise LinterLost("the linter's process died on this text") from None
            except LinterLost:
                self._stop()
                raise
        if isinstance(answer, str):
            raise LinterLost(answer)
        return cast("LintResult | None", answer)

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._stop()

    def _started(self) -> Connection:
        if self._process is None or self._pipe is None or not self._process.is_alive():
            self._stop()
            # `spawn`: the server has threads, and a fork would copy their locks.
            context = multiprocessing.get_context("spawn")
            self._pipe, theirs = context.Pipe()
            self._process = context.Process(target=_serve, args=(theirs,), daemon=True, name="pypto-op-lint")
            self._process.start()
            theirs.close()
        return self._pipe

    def _stop(self) -> None:
        if self._pipe is not None:
            self._pipe.close()
        if self._process is not None:
            self._process.kill()
            self._process.join()
        self._process = self._pipe = None


def _serve(pipe: Connection) -> None:
    """Answer one question after another: a result, None, or a sentence on what went wrong."""
    os.dup2(2, 1)  # stdout belongs to the protocol
    from pypto_op.errors import ContractError
    from pypto_op_lint.api import lint_path

    while True:
        try:
            question = pipe.recv()
        except (EOFError, OSError):
            return
        path, text, unsaved = question
        try:
            pipe.send(lint_path(path, text=text, unsaved=unsaved, loose=True))
        except ContractError:
            pipe.send(None)  # the name says that it is no file of an operator
        except Exception as error:
            pipe.send(" ".join(f"internal error: {type(error).__name__}: {error}".split())[:300])
