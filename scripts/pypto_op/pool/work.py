"""What a pool is given: jobs, and two ways to do them, here and elsewhere."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, Protocol

Say = Callable[[Any], None]
"""Takes a word of a job that is under way: any value that can be pickled. Each word renews the job's lease."""


@dataclass(frozen=True)
class Job:
    """One piece of work."""

    key: str  # its name, for people
    payload: Any  # what a bench does; it can be pickled
    alone: bool = False  # it times something, so nothing else runs meanwhile on what its hand shares with others (`Hand.shares`)


class Bench(Protocol):
    """What jobs are done on, in a process that is not the caller's."""

    hello: Any  # what the caller wants to know of the machine before any job; it can be pickled

    def do(self, payload: Any, say: Say) -> Any:
        """Do one job and return what came of it; the errors of `pypto_op.errors` reach the caller."""


class Work(Protocol):
    """How to set up a bench elsewhere: everything that it needs, and it can be pickled."""

    def open(self) -> AbstractContextManager[Bench]:
        """Set up a bench in this process."""


class Errand(Protocol):
    """A kind of job."""

    @property
    def silence(self) -> float:
        """Seconds without a word after which a job elsewhere has lost its lease."""

    def here(self, payload: Any, say: Say) -> Any:
        """Do one job in this process; several threads may call it."""

    def away(self) -> Work:
        """Return how the jobs are done elsewhere."""

    def stop(self) -> None:
        """End what jobs of this process wait for: the rest of them is not wanted any more."""


@cache
def about() -> dict[str, str]:
    """Return what two processes must have in common to give equal results: this package's bytes, Python, torch, pypto."""
    root = Path(__file__).parents[1]
    state = hashlib.sha256()
    for path in sorted(path for path in root.rglob("*") if path.suffix in (".py", ".yaml", ".json", ".cpp")):
        state.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes())
    found = {"pypto-op": state.hexdigest()[:12], "python": ".".join(platform.python_version_tuple()[:2])}
    for name in ("torch", "pypto"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "none"
    return found
