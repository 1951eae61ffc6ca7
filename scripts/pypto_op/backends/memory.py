"""Waits for memory and calls a worker once more, where Linux ended it although it stayed within its limit."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator

from pypto_op.backends import control_groups
from pypto_op.errors import InfraError

PATIENCE = 20.0
"""Seconds to wait for memory before a call is made once more."""

REMEDY = "close other programs or use --jobs 1, then run it again"

_LOOK_SECONDS = 0.5
_LEAST_MB = 1024
_TURN = threading.Lock()


class NoMemoryLeft(InfraError):
    """The kernel ended a worker for lack of memory, though it used less than it may; no word on what it ran."""


def available_mb() -> int:
    """Return how many MiB this process and its workers can get without swapping: of the machine, and of their control groups."""
    import psutil  # here, since most runs of a worker never ask

    return min([int(psutil.virtual_memory().available) // 2**20, *control_groups.free_mb()])


def no_memory_left(file_name: str, used_mb: float, limit_mb: int) -> NoMemoryLeft:
    """Return the error for a worker of `file_name` that was ended when it held so much."""
    free = available_mb()
    return NoMemoryLeft(
        f"the machine has too little memory: its kernel ended the process of {file_name}, which held {used_mb:.0f} MiB "
        f"of the {limit_mb} MiB that it may; {free} MiB are free now",
        remedy=REMEDY,
    )


@contextlib.contextmanager
def once_more(used_mb: float, limit_mb: int) -> Iterator[None]:
    """Wait until memory is free for a call that was lost, or `PATIENCE` is over; one such call runs at a time.

    Args:
        used_mb: what the worker was seen to hold; it may have needed more.
        limit_mb: what it may hold.
    """
    wanted = min(float(limit_mb), max(_LEAST_MB, 2 * used_mb))
    with _TURN:
        deadline = time.monotonic() + PATIENCE
        while available_mb() < wanted and time.monotonic() < deadline:
            time.sleep(_LOOK_SECONDS)
        yield
