"""The few Linux calls that Python's standard library lacks, by ctypes."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path  # a supervisor of one command imports this file too

NEW_MOUNTS = 0x00020000
NEW_IPC = 0x08000000
NEW_USER = 0x10000000
NEW_PIDS = 0x20000000
NEW_NETWORK = 0x40000000

PAST_THE_MOUNTS = {"dac_read_search": 2, "sys_module": 16, "sys_rawio": 17, "sys_ptrace": 19, "sys_admin": 21, "mknod": 27}
"""Capabilities of root with which a process changes its mounts, or reaches a file past them."""

BIND, RECURSIVE, PRIVATE, READ_ONLY, NO_DEVICES, REMOUNT = 0x1000, 0x4000, 1 << 18, 1, 4, 32

_PDEATHSIG, _NO_NEW_PRIVILEGES, _CHILD_SUBREAPER, _GET_CHILD_SUBREAPER, _CAPBSET_DROP = 1, 38, 36, 37, 24
_SYS_MOUNT_SETATTR = 442  # the same number on every architecture
_AT_RECURSIVE = 0x8000
_CAPABILITY_VERSION_3 = 0x20080522

_libc = ctypes.CDLL(None, use_errno=True)


class _MountAttributes(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "userns")]


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def die_with_parent(signal_number: int) -> None:
    """Ask for `signal_number` when the parent dies."""
    _check(_libc.prctl(_PDEATHSIG, signal_number, 0, 0, 0), "prctl")


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent dies."""
    _check(_libc.prctl(_CHILD_SUBREAPER, 1, 0, 0, 0), "prctl")


def adopts_orphans() -> bool:
    """Whether this process has called `adopt_orphans`, before an exec too."""
    found = ctypes.c_int(0)
    _check(_libc.prctl(_GET_CHILD_SUBREAPER, ctypes.byref(found), 0, 0, 0), "prctl")
    return bool(found.value)


def unshare(flags: int) -> None:
    """Leave the given namespaces for new ones; raise OSError where that is not allowed."""
    _check(_libc.unshare(flags), "unshare")


def mount(source: str | None, target: Path | str, kind: str | None, flags: int, data: str = "") -> None:
    """mount(2); raise OSError when it fails."""

    def encoded(text: str | None) -> bytes | None:
        return None if text is None else os.fsencode(text)

    _check(
        _libc.mount(encoded(source), os.fsencode(target), encoded(kind), ctypes.c_ulong(flags), data.encode()),
        f"mount {target}",
    )


def set_read_only(target: Path | str, on: bool, *, recursive: bool = False) -> None:
    """Make the mount at `target` read-only, or writable again; raise OSError on kernels before 5.12."""
    attributes = _MountAttributes(READ_ONLY if on else 0, 0 if on else READ_ONLY, 0, 0)
    _check(
        _libc.syscall(
            ctypes.c_long(_SYS_MOUNT_SETATTR),
            ctypes.c_int(-100),
            os.fsencode(target),
            ctypes.c_uint(_AT_RECURSIVE if recursive else 0),
            ctypes.byref(attributes),
            ctypes.c_size_t(ctypes.sizeof(attributes)),
        ),
        f"mount_setattr {target}",
    )


def close_device(path: Path | str) -> None:
    """Mount a device's file on itself so that nobody can open it there; raise OSError when it fails."""
    mount(os.fspath(path), path, None, BIND)
    mount(None, path, None, REMOUNT | BIND | NO_DEVICES)


def drop_capabilities() -> None:
    """Give up every capability for good, those that a later exec would bring back included."""
    _check(_libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0), "prctl")
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    data = (ctypes.c_uint32 * 6)()
    _check(_libc.capset(ctypes.byref(header), ctypes.byref(data)), "capset")


def give_up(capabilities: Sequence[int]) -> None:
    """Give up these capabilities for good, so that no later exec brings them back; raise OSError without the right to it."""
    for number in capabilities:
        _check(_libc.prctl(_CAPBSET_DROP, number, 0, 0, 0), "prctl")
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    data = (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable of the first 32, then of the others
    _check(_libc.capget(ctypes.byref(header), ctypes.byref(data)), "capget")
    for number in capabilities:
        for kind in range(3):
            data[number // 32 * 3 + kind] &= ~(1 << number % 32)
    _check(_libc.capset(ctypes.byref(header), ctypes.byref(data)), "capset")


def flush_stdio() -> None:
    """Write out what C code has buffered."""
    _libc.fflush(None)
