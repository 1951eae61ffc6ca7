"""The kernel's name spaces of processes: a process's number means nothing without the one that it was read in.

An agent's command has a name space of its own (`runner/apart.py`), and so has a candidate below a judge. Standard library only.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def here() -> int:
    """Return which name space this process is in."""
    return Path("/proc/self/ns/pid").stat().st_ino


def number_here(process: int, space: int) -> int | None:
    """Return the number that a process of another name space has in this one; None where it cannot be seen from here."""
    if space == here():
        return process
    for entry in os.listdir("/proc"):  # noqa: PTH208 (a `Path` for each process takes longer)
        with contextlib.suppress(OSError, StopIteration):
            if entry.isdigit() and Path(f"/proc/{entry}/ns/pid").stat().st_ino == space:
                lines = Path(f"/proc/{entry}/status").read_text(encoding="utf-8", errors="replace").splitlines()
                if int(next(line for line in lines if line.startswith("NSpid:")).split()[-1]) == process:
                    return int(entry)
    return None
