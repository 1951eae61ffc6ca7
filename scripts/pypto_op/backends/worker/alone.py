"""Runs a module golden alone: its code can open no file of the workspace but its own.

What it may use is said in `pypto_op.self_contained`, which reads the source; this refuses what no reading sees. The process
is never one in which the operator's golden or its inputs were loaded.
"""

from __future__ import annotations

import contextlib
import os
import site
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pypto_op
from pypto_op.backends.worker.guard import Fence, Guard
from pypto_op.backends.worker.loading import Failure
from pypto_op.vocabulary import Outcome
from pypto_op.workspace import OpWorkspace

_SYSTEM = ("/usr", "/lib", "/lib64", "/etc", "/proc", "/sys", "/dev", "/opt")


@dataclass(frozen=True)
class _Alone(Fence):
    """A fence that lets through the installed packages, the scratch folder and one file."""

    installed: tuple[str, ...] = ()  # folders of Python and of what is installed there

    def may_read(self, path: str) -> bool:
        """Whether `path`, absolute and resolved, may be read."""
        if path in self.own or _within(path, (self.scratch,)):
            return True
        return not _within(path, (str(self.workspace.root),)) and _within(path, self.installed)

    def may_import(self, name: str) -> bool:
        """Every import opens a file, which `may_read` decides on."""
        return True


class Alone:
    """The guard of a session that knows one module golden.

    Args:
        document: `file`, the golden; `workspace`, the operator's directory.
    """

    def __init__(self, document: dict[str, str], scratch: str) -> None:
        self.file = document["file"]
        installed = {sys.prefix, sys.base_prefix, sys.exec_prefix, *site.getsitepackages(), site.getusersitepackages()}
        installed |= {str(Path(pypto_op.__file__).parent), str(Path(os.__file__).parent)}
        folders = tuple(os.path.realpath(folder) for folder in (*installed, *_SYSTEM))
        workspace = OpWorkspace.at(document["workspace"])
        self._guard = Guard(_Alone(os.path.realpath(scratch), workspace, (self.file,), (), folders))
        self._guard.install()

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Refuse, while the block runs, what a module golden may not do; raise afterwards when the golden swallowed the refusal.

        Raises:
            Failure: FORBIDDEN, with what it tried.
        """
        self._guard.take_offences()
        self._guard.arm()
        try:
            yield
        finally:
            self._guard.arm(False)
            offences = self._guard.take_offences()
            if offences:
                words = f"{Path(self.file).name}: a module golden stands alone; it tried to {offences[0]}"
                raise Failure(Outcome.FORBIDDEN, words)


def _within(path: str, folders: tuple[Any, ...]) -> bool:
    return any(path == folder or path.startswith(f"{folder}/") for folder in folders)
