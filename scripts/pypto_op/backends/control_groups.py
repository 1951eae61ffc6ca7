"""What Linux grants this process of the machine: the time of so many cores, and so much memory.

A container on a host of 192 cores and 1.5 TiB often has 8 and 64 GiB. Workers for all of the host would share these, and the
kernel would end them for memory that the host still has. Both versions of control groups are read, and each group above this one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

_OWN, _MOUNTED = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")


def cores(own: Path = _OWN, mounted: Path = _MOUNTED) -> Iterator[int]:
    """Yield how many cores' time each group may take, rounded up; nothing of groups that may take all.

    Args:
        own: names the groups of this process, in lines of `number:controllers:path`; the second version has no controllers.
        mounted: where they are: at once in the second version, in a folder for each controller in the first.
    """
    for folder, first in _groups("cpu", own, mounted):
        names = ("cpu.cfs_quota_us", "cpu.cfs_period_us") if first else ("cpu.max",)
        quota, period = _two(folder, *names)
        if quota > 0 and period > 0:
            yield math.ceil(quota / period)


def free_mb(own: Path = _OWN, mounted: Path = _MOUNTED) -> Iterator[int]:
    """Yield how many MiB each group may still take; pages of files that it has not used of late are free. See `cores`."""
    for folder, first in _groups("memory", own, mounted):
        names = ("memory.limit_in_bytes", "memory.usage_in_bytes") if first else ("memory.max", "memory.current")
        most, used = _two(folder, *names)
        if most > 0:
            yield max(0, most - max(0, used - _idle(folder, "total_inactive_file" if first else "inactive_file"))) // 2**20


def _groups(controller: str, own: Path, mounted: Path) -> Iterator[tuple[Path, bool]]:
    """Yield the folder of each group of this process that one controller bounds, and whether it is of the first version."""
    try:
        lines = [line.split(":", 2) for line in own.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError):  # another system
        return
    for _, controllers, path in (line for line in lines if len(line) == 3):
        if controllers and controller not in controllers.split(","):
            continue
        root = mounted / controllers if controllers else mounted
        inner = root / path.strip("/")
        for folder in (inner, *inner.parents):  # a container may see its own group as the root, under the name that the host has
            if folder.is_relative_to(root):
                yield folder, bool(controllers)


def _two(folder: Path, *names: str) -> tuple[int, int]:
    """Return the two numbers in some files; zeros where they are missing, or say "max", which is no limit."""
    try:
        first, second = [int(word) for name in names for word in (folder / name).read_text(encoding="utf-8").split()]
    except (OSError, ValueError):
        return 0, 0
    return first, second


def _idle(folder: Path, name: str) -> int:
    try:
        lines = [line.split() for line in (folder / "memory.stat").read_text(encoding="utf-8").splitlines()]
    except (OSError, ValueError):
        return 0
    return next((int(line[1]) for line in lines if len(line) == 2 and line[0] == name), 0)
