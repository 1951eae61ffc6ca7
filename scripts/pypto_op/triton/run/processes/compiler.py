"""What Triton's compiler needs at the first launch of a process and what is the same in each, made once: forks find it there.

Half of what a first launch takes goes into two things. Triton's cache hashes the whole library for the names of its files, and
the driver compiles a module of C, which lies in the cache: a session's own, which is empty. A folder that sessions share would
not do, since a candidate could change what the next one loads. So the module's bytes are kept in memory.
"""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
from pathlib import Path

_SECONDS = 30
"""A driver that takes longer is not waited for."""
_built: dict[str, bytes] = {}
"""By its path in the cache."""


def make_ready() -> None:
    """Hash the library and build the module, in the process that others are forked from; harmless where that does not work."""
    with contextlib.suppress(ImportError, OSError):  # an older Triton has it elsewhere
        from triton.runtime.cache import triton_key

        triton_key()
    with tempfile.TemporaryDirectory() as folder:
        child = os.fork()  # a driver that is at work does not survive a fork
        if child == 0:
            _build(folder)
        os.waitpid(child, 0)
        files = (path for path in Path(folder).rglob("*") if path.is_file())
        _built.update({str(path.relative_to(folder)): path.read_bytes() for path in files})


def install(folder: Path) -> None:
    """Put the module into an empty cache, where one was built."""
    for name, content in _built.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def _build(folder: str) -> None:
    """Let the driver build what it needs, in a process that ends with it."""
    try:
        signal.alarm(_SECONDS)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        os.environ["TRITON_CACHE_DIR"] = folder
        from triton.runtime import driver

        assert driver.active
    finally:
        os._exit(0)
