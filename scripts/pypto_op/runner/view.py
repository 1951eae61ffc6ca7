"""What a command of an agent sees of the disk: all of it, and most of it cannot be written.

The guard reads a command's words; what a program writes by itself it cannot know. Where the machine lets a process have mounts of
its own, the kernel refuses such a write. Standard library only: the supervisor of one command imports this.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Mapping, Sequence

from pypto_op.backends.worker import linux
from pypto_op.runner import apart

_TEMP = ("/tmp", "/var/tmp")  # noqa: S108
_THE_KERNELS = ("/proc", "/dev", "/run")
_OBEY_OTHERS = (
    "docker.sock", "containerd/containerd.sock", "podman/podman.sock", "crio/crio.sock", "buildkit/buildkitd.sock", "bus",
    "dbus/system_bus_socket", "systemd/private", "libvirt/libvirt-sock", "snapd.socket",
)  # fmt: skip
"""Sockets below /run, and below /run/user/UID: services that start a process, or mount something, for whoever asks there."""
_AS_GOOD_AS_A_DISK = re.compile(r"sg\d+|nvme\d+|mem|kmem|port")
"""Devices of characters through which a disk, or the machine's memory, can be written."""
_FOR_PROGRAMS = re.compile(r"\..+|ascend")
"""Folders of HOME in which programs keep caches, logs and settings: the hidden ones, and that of CANN's and pypto's logs."""
_NAMES_A_FOLDER = re.compile(
    r"TMPDIR|(XDG|PYPTO_OP)_\w+|\w+_(CACHE|CACHE_DIR|CACHE_PATH|CACHE_HOME|WORK_PATH|LOG_PATH|OUTPUT_DIR)"
)
_NAMES_A_FILE = re.compile(r"PYPTO_OP_\w+_FILE")


def narrow(workspace: str, environment: Mapping[str, str], hidden: Sequence[str] = ()) -> bool:
    """Let this process and what it starts write only in the workspace, in folders for temporary files, and where programs keep
    caches, logs and settings; in HOME itself they can make new files, but not change those that are there.

    `apart.own_mounts` has been called.

    Args:
        environment: the command's; its variables name HOME and further folders for such things.
        hidden: folders that look empty to it.

    Returns:
        False where the machine does not allow it; nothing is changed then.
    """
    home, free, closed = _places(workspace, environment)
    try:
        for path in [*home, *free]:
            linux.mount(path, path, None, linux.BIND | linux.RECURSIVE)
    except OSError:
        return False
    for path in closed:
        with contextlib.suppress(OSError):  # it vanished
            linux.mount(path, path, None, linux.BIND | linux.RECURSIVE)
    _close_doors()
    hide(hidden)
    for point in _mount_points():
        if point not in home and not _is_below(point, [*free, *_THE_KERNELS]):
            with contextlib.suppress(OSError):  # another mount covers it
                linux.set_read_only(point, True)
    apart.give_up([*linux.PAST_THE_MOUNTS.values()])
    os.chdir(workspace)  # until now this process stood on the mount that was covered
    return True


def hide(folders: Sequence[str]) -> None:
    """Let folders look empty to this process and what it starts; `apart.own_mounts` has been called."""
    for path in folders:
        with contextlib.suppress(OSError):  # it is not there
            linux.mount("none", path, "tmpfs", linux.READ_ONLY, "size=4k,mode=755")


def _places(workspace: str, environment: Mapping[str, str]) -> tuple[list[str], list[str], list[str]]:
    """Return HOME where it counts, the folders that stay free, and what of HOME does not."""
    named = [value for name, value in environment.items() if _NAMES_A_FOLDER.fullmatch(name)]
    named += [os.path.dirname(value) for name, value in environment.items() if _NAMES_A_FILE.fullmatch(name)]  # noqa: PTH120
    paths = [workspace, *_TEMP, *named]
    free = {os.path.realpath(path) for path in paths if os.path.isabs(path) and os.path.isdir(path)} - {"/"}  # noqa: PTH112, PTH117
    home = os.path.realpath(environment.get("HOME") or "/")
    if home == "/" or not os.access(home, os.R_OK | os.X_OK) or not os.path.isdir(home) or _is_below(home, [*free]):  # noqa: PTH112
        return [], sorted(free), []
    with os.scandir(home) as entries:
        own = {entry.path: entry for entry in entries if not entry.is_symlink()}
    free |= {path for path, entry in own.items() if entry.is_dir() and _FOR_PROGRAMS.fullmatch(entry.name)}
    return [home], sorted(free), [path for path, entry in own.items() if path not in free and (entry.is_dir() or entry.is_file())]


def _close_doors() -> None:
    """Close what leads past the mounts: the disks themselves, and services that act for others."""
    with os.scandir("/dev") as entries:
        own = {entry: entry.stat(follow_symlinks=False).st_mode for entry in entries}
    disks = [entry.path for entry, mode in own.items() if stat.S_ISBLK(mode) or _AS_GOOD_AS_A_DISK.fullmatch(entry.name)]
    users = [f"/run/user/{name}" for name in (os.listdir("/run/user") if os.path.isdir("/run/user") else [])]  # noqa: PTH112, PTH208
    for path in filter(_can_write, disks):
        with contextlib.suppress(OSError):  # it vanished
            linux.close_device(path)
    for path in filter(_can_write, [f"{folder}/{name}" for folder in ("/run", *users) for name in _OBEY_OTHERS]):
        with contextlib.suppress(OSError):
            linux.mount("/dev/null", path, None, linux.BIND)


def _can_write(path: str) -> bool:
    return os.access(path, os.W_OK)


def _mount_points() -> list[str]:
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:  # noqa: PTH123
        points = [line.split()[4] for line in file]
    return [re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), point) for point in dict.fromkeys(points)]


def _is_below(path: str, folders: Sequence[str]) -> bool:
    return any(path == folder or path.startswith(folder + "/") for folder in folders)
