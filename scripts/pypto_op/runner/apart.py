"""Gives one command name spaces of its own: its own mounts, and a view of those processes alone that it started.

What cannot be seen cannot be ended, nor its environment read.

Where the machine allows neither, the command is a process among others. Standard library only: the supervisor of one command
imports this.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Callable

from pypto_op.backends.worker import linux

_KILLED = 137


def own_mounts() -> bool:
    """Leave the machine's mounts for a copy: by right, else in a name space of users that knows this one alone.

    Returns:
        False where the machine does not allow it; nothing is changed then.
    """
    try:
        linux.unshare(linux.NEW_MOUNTS)
    except OSError:
        if not _goes_well(as_only_user):  # a process that got only half of it would not be who it was
            return False
        as_only_user()
    linux.mount(None, "/", None, linux.RECURSIVE | linux.PRIVATE)
    return True


def as_only_user() -> None:
    """Enter a name space of users that knows this process's user and group alone, with mounts of its own."""
    user, group = os.geteuid(), os.getegid()
    linux.unshare(linux.NEW_USER | linux.NEW_MOUNTS)
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:  # noqa: PTH123
            file.write(text)
    linux.mount(None, "/", None, linux.RECURSIVE | linux.PRIVATE)


def allowed() -> bool:
    """Whether a process of this account may have both; tried for real, in a child. `leash` asks once, not for each command."""
    return _goes_well(_tried)


def own_processes(work: Callable[[], int], pipe: int, began: int) -> int:
    """Do `work` in a child that is alone with what it starts; `own_mounts` has been called, and both are `allowed`.

    The child is the second of its name space: above it stands one that only collects. When the child ends, or anybody ends it,
    everything in the name space ends.

    Args:
        work: returns an exit status.
        pipe: everything ends when nobody can write to it any more.
        began: a pipe that `work` closes when it has begun, and whose copies go here.

    Returns:
        The exit status of `work`, 137 when it was cut short.
    """
    linux.unshare(linux.NEW_PIDS)
    first = os.fork()
    if first == 0:
        _begin(work, began)
    os.close(began)
    return ended(first, pipe)


def ended(child: int, pipe: int) -> int:
    """Wait for a child, or until nobody can write to `pipe` any more, and end it then; return its status as a shell says it."""
    handle = os.pidfd_open(child)
    ready, _, _ = select.select([handle, pipe], [], [])
    if handle not in ready:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return _KILLED
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code if code >= 0 else 128 - code


def _begin(work: Callable[[], int], began: int) -> None:
    """Be the first process of a name space: show its processes alone, start the one that works, and collect what others leave."""
    code = _KILLED
    try:
        linux.die_with_parent(signal.SIGKILL)
        linux.mount("proc", "/proc", "proc", 0)
        child = os.fork()
        if child == 0:
            os._exit(work())
        os.close(began)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        while (found := os.wait())[0] != child:
            pass
        status = os.waitstatus_to_exitcode(found[1])
        code = status if status >= 0 else 128 - status
    except BaseException as error:
        os.write(2, f"the process above the command ended: {error!r}\n".encode())
    finally:
        os._exit(code)


def _tried() -> None:
    """Make such name spaces, in a process that ends after that."""
    if not own_mounts():
        raise OSError("no mounts of its own")
    linux.unshare(linux.NEW_PIDS)
    if not _goes_well(lambda: linux.mount("proc", "/proc", "proc", 0)):
        raise OSError("no /proc of its own")


def _goes_well(action: Callable[[], None]) -> bool:
    """Whether a child of this process can do something."""
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            action()
            os._exit(0)
        os._exit(1)
    return os.waitpid(child, 0)[1] == 0


def give_up(rights: list[int]) -> None:
    """Give up rights of root, if a process without them may still have name spaces of its own: a kernel that is judged below this
    one is enclosed by these, and that counts more.
    """

    def tried() -> None:
        linux.give_up(rights)
        as_only_user()

    if _goes_well(tried):
        linux.give_up(rights)
