"""The one kind of lock: of a state, a document, a cache's entry, a device. The kernel releases it when its holder dies.

It is `fcntl.flock`. The lock file stays where it is, since a file that is removed could be locked twice.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType

from pypto_op.errors import REMEDIES, InfraError

SECONDS = 30.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.001, 0.05


class Lock:
    """A lock on a file; a context manager.

    Args:
        path: the lock file; its folder must exist.
        seconds: how long to wait for another holder; None: for ever.
        busy: the error for one that waited so long.
    """

    def __init__(self, path: Path, *, seconds: float | None = SECONDS, busy: InfraError | None = None) -> None:
        self._path, self._seconds = path, seconds
        self._busy = busy or InfraError("another process holds the lock", file=path, remedy="wait for it, then try again")
        self._descriptor = -1

    def acquire(self) -> Lock:
        """Take the lock.

        Raises:
            InfraError: another process kept it for so long, or it cannot be made.
        """
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
        except OSError as error:
            problem = f"the lock cannot be made ({error.strerror})"
            remedy = REMEDIES.get(error.errno or 0, "make the folder writable")
            raise InfraError(problem, file=self._path, remedy=remedy) from None
        try:
            self._wait(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor
        return self

    def _wait(self, descriptor: int) -> None:
        if self._seconds is None:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            return
        deadline, pause = time.monotonic() + self._seconds, _FIRST_PAUSE
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise self._busy from None
            time.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    def release(self) -> None:
        """Give the lock back; harmless when it is not held."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Lock:
        return self.acquire()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.release()


@contextmanager
def held_folder(parent: Path, name: str) -> Iterator[Path]:
    """Give a folder `<name>-...` in `parent` that is removed afterwards.

    Where a process was killed, the next one removes what it left: nobody holds such a folder any more, in whatever name space
    that was.
    """
    for left in parent.glob(f"{name}-*"):
        with suppress(OSError), _holding(left):
            shutil.rmtree(left, ignore_errors=True)
    made = Path(tempfile.mkdtemp(prefix=f"new-{name}-", dir=parent)).resolve()
    folder = made.with_name(made.name.removeprefix("new-"))
    try:
        with _holding(made):  # before it has the name by which others look for what they may remove
            made.rename(folder)
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _holding(folder: Path) -> Iterator[None]:
    """Hold a folder's lock; BlockingIOError where another process does, OSError for what is no folder."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)
