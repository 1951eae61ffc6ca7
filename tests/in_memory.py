"""Folders in memory for rooms that judge in `sim`: pypto writes many files a verdict, a fifth of its time on a disk."""

from __future__ import annotations

import functools
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pypto_op.backends.memory import available_mb

ROOMS = frozenset({"judge", "mutation", "reproduce", "tuning"})
"""Rooms whose tests get one and were run there; what tests ask of a disk (durability, links) lies in others."""
_MEMORY = Path("/dev/shm")
_LEAST_MB = 8192
"""So much must be free there, and of the machine's memory: the tests' own processes need most of it."""


def has_one(test: Path) -> bool:
    """Whether a test in this file gets a folder in memory here."""
    return test.is_relative_to(_TESTS) and test.relative_to(_TESTS).parts[0] in ROOMS and _roomy()


@contextmanager
def folder() -> Iterator[Path]:
    """Give an empty folder in memory, which goes afterwards: memory is no place to keep what failed."""
    made = Path(tempfile.mkdtemp(prefix="pypto-op-test-", dir=_MEMORY))
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


_TESTS = Path(__file__).resolve().parent


@functools.cache
def _roomy() -> bool:
    """Whether memory serves as a disk here, with enough left; asked once, so that all tests of a process are run alike."""
    if not (os.access(_MEMORY, os.W_OK) and Path("/proc/meminfo").exists()):
        return False
    return min(shutil.disk_usage(_MEMORY).free >> 20, available_mb()) >= _LEAST_MB
