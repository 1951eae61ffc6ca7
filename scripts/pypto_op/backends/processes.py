"""Process trees as /proc shows them: who is below a process, how much memory they hold, and their end."""

from __future__ import annotations

import contextlib
import os
import signal
import time

_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICK = 1.0 / os.sysconf("SC_CLK_TCK")
_PATIENCE = 5.0
"""Seconds that `kill_below` waits for processes to end."""


def _told(file: str) -> str:
    """Return what the kernel says in a file of /proc, without a `Path`: a judge looks twenty times a second.

    Raises:
        OSError: the process is gone.
    """
    descriptor = os.open(f"/proc/{file}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = []
        while part := os.read(descriptor, 65536):
            parts.append(part)
        return b"".join(parts).decode(errors="replace")
    finally:
        os.close(descriptor)


def children_of(parent: int) -> list[int]:
    """Return the children of a process; empty when it is gone."""
    found: list[int] = []
    with contextlib.suppress(OSError, ValueError):
        for task in os.listdir(f"/proc/{parent}/task"):  # noqa: PTH208 (as `_told`)
            with contextlib.suppress(OSError, ValueError):
                found += map(int, _told(f"{parent}/task/{task}/children").split())
    return found


def tree_below(root: int) -> list[int]:
    """Return every process below `root`, parents before their children."""
    found: list[int] = []
    for child in children_of(root):
        found += [child, *tree_below(child)]
    return found


def waiting_seconds(process: int) -> float:
    """Return how long a process's first thread was ready to run and had no core, since it began; 0 when it is gone.

    From /proc/PID/schedstat; 0 where the kernel does not keep it.
    """
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int(_told(f"{process}/schedstat").split()[1]) / 1e9
    return 0.0


def resident_bytes(process: int) -> int:
    """Return the resident memory of a process; 0 when it is gone."""
    try:
        return int(_told(f"{process}/statm").split()[1]) * _PAGE
    except (OSError, ValueError, IndexError):
        return 0


def shared_out_bytes(process: int) -> int:
    """Return the resident memory of a process, pages that several processes share divided among them; 0 when it is gone.

    The kernel calls it the proportional set size. A process that forks is resident twice and holds its memory once.
    """
    try:
        lines = _told(f"{process}/smaps_rollup").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
    except (OSError, ValueError, IndexError, StopIteration):
        return resident_bytes(process)


def peak_bytes(process: int) -> int:
    """Return the highest resident memory that a process ever had; 0 when it is gone."""
    return _status_bytes(process, "VmHWM:")


def data_bytes(process: int) -> int:
    """Return what a process has reserved for data, touched or not; 0 when it is gone."""
    return _status_bytes(process, "VmData:")


def cpu_seconds(process: int, *, collected: bool = True) -> float:
    """Return the processor time of a process and of the children that it has `collected`; 0 when it is gone."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        fields = _told(f"{process}/stat").rpartition(")")[2].split()
        return sum(int(ticks) for ticks in fields[11 : 15 if collected else 13]) * _TICK
    return 0.0


def _status_bytes(process: int, field: str) -> int:
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in _told(f"{process}/status").splitlines():
            if line.startswith(field):
                return int(line.split()[1]) * 1024
    return 0


def kill(process: int, number: int = signal.SIGKILL) -> None:
    """Send a signal; a process that is gone is no error."""
    with contextlib.suppress(OSError):
        os.kill(process, number)


def kill_tree(root: int) -> None:
    """End `root` and everything below it, children first."""
    for process in reversed(tree_below(root)):
        kill(process)
    kill(root)


def kill_below() -> None:
    """End everything below this process and collect it; orphans must come here (`linux.adopt_orphans`)."""
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        for child in children_of(os.getpid()):
            kill_tree(child)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.01)


def is_gone(process: int) -> bool:
    """Whether a process has ended; one that waits to be collected counts as gone."""
    try:
        state = _told(f"{process}/stat").rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return True
    return state in ("Z", "X")


def kills_for_memory() -> int:
    """Return how often the kernel has killed a process since boot because memory ran out; 0 if it will not say."""
    with contextlib.suppress(OSError, ValueError):
        for line in _told("vmstat").splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return 0
