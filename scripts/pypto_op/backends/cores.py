"""How many cores there are, and how many threads torch gets in which process: judge, references and candidates run side by side.

torch's threads spin while they wait for a core. On two cores that others wanted too, a comparison of 128 thousand elements
was measured at 112 ms of processor time on two threads, and at 6 ms on one. A script has as many threads as it likes, so its
threads are told to sleep while they wait (`OMP_WAIT_POLICY`): a thousand products of 128 by 512 by 512 took 2 seconds, not 22.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator

from pypto_op.backends import control_groups
from pypto_op.backends.allocation import keep_freed

_MOST = 4
_MOST_BORROWED = 8
_ELEMENTS_A_THREAD = 1 << 20


def usable() -> int:
    """Return on how many cores this process may compute: those that it is bound to, as far as its control groups give it time."""
    bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([bound, *control_groups.cores()]))


def leave_to_workers() -> None:
    """Compute on one thread in this process from now on, since its workers and its other lanes want the cores."""
    keep_freed()
    if "torch" not in sys.modules:
        os.environ["OMP_NUM_THREADS"] = "1"  # torch reads it when it is imported
        return
    import torch

    torch.set_num_threads(1)


@contextlib.contextmanager
def borrowed(elements: int) -> Iterator[None]:
    """Compute on up to eight threads in this block: its workers wait for it, and there are enough elements for each thread."""
    import torch

    torch.set_num_threads(max(1, min(_MOST_BORROWED, usable(), elements // _ELEMENTS_A_THREAD)))
    try:
        yield
    finally:
        torch.set_num_threads(1)


def share_among_references() -> None:
    """Compute on half of the cores, at most four: two lanes run at once, each with a reference of its own."""
    import torch

    torch.set_num_threads(max(1, min(_MOST, usable() // 2)))
