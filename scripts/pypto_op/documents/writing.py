"""Write documents so that readers see the old text or the new one, and writers wait for each other."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pypto_op.errors import InfraError, unwritable
from pypto_op.locks import Lock


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a document, which lies in the document's folder under `_debug/`.

    Raises:
        InfraError: the lock cannot be made, or another process kept it for too long.
    """
    lock = path.parent / "_debug" / f".{path.name}.lock"
    try:
        lock.parent.mkdir(exist_ok=True)
    except OSError as error:
        raise unwritable(error, lock) from None
    with Lock(lock, busy=InfraError("another process is writing it", file=path, remedy="wait for it, then try again")):
        yield


def write_atomically(path: Path, text: str) -> None:
    """Replace `path` by `text` so that a reader sees all of it or none; its folder is made when it is missing.

    Raises:
        InfraError: it cannot be written.
    """
    draft = path.with_name(f".{path.name}.{os.urandom(4).hex()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with draft.open("w", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        draft.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise unwritable(error, path) from None
