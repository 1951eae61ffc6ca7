"""The enclosure of a session: name spaces where the machine allows them, resource limits everywhere.

With name spaces a worker has no network, sees no process but its own, can write nowhere but in its scratch
folder, and finds the hidden paths (golden, tests, `eval/`, the sealing key) empty; killing the first process of
its process space ends all of them. Where name spaces are forbidden (many containers), only `guard`, an audit
hook inside the worker's own interpreter, refuses those things, and C code can go around it.
"""

from __future__ import annotations

import os
import resource
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from pypto_op.backends.processes import data_bytes
from pypto_op.backends.worker import linux

_MIB = 1024 * 1024
_SLACK_MB = 4096
"""Room above the memory limit for what counts as data although it is never touched: stacks of threads, and the
32 MiB that pypto reserves at each launch and never gives back (a worker is replaced in time, see `session`)."""


@dataclass(frozen=True)
class Enclosure:
    """What a session may touch."""

    scratch: Path  # the session's folder, writable
    hidden: tuple[Path, ...] = field(default=())  # files and folders that look empty inside
    read_only: bool = True  # nothing but `scratch` can be written
    offline: bool = True  # there is no network

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> Enclosure:
        """Read what `enclosed.enclosure_document` wrote."""
        return cls(
            Path(document["scratch"]),
            tuple(Path(path) for path in document["hidden"]),
            bool(document["read_only"]),
            bool(document["offline"]),
        )


def enter(enclosure: Enclosure) -> None:
    """Move this process into name spaces of its own; its next child is the first process of the new space.

    The folder that holds `scratch` looks as if it held nothing else.

    Raises:
        OSError: the machine does not allow it; the process must then end, since it may be half inside.
    """
    user, group = os.geteuid(), os.getegid()
    flags = linux.NEW_USER | linux.NEW_PIDS | linux.NEW_MOUNTS | linux.NEW_IPC
    linux.unshare(flags | (linux.NEW_NETWORK if enclosure.offline else 0))
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    linux.mount(None, "/", None, linux.RECURSIVE | linux.PRIVATE)
    for path in enclosure.hidden:
        _hide(path)
    _show_alone(enclosure.scratch)
    if enclosure.read_only:
        linux.set_read_only("/", True, recursive=True)
        linux.set_read_only(enclosure.scratch, False)


def settle() -> None:
    """Finish the enclosure from inside: show only its own processes, and give up what it took to build it.

    Raises:
        OSError: the machine does not allow it.
    """
    linux.mount("proc", "/proc", "proc", 0)
    linux.drop_capabilities()


def allowed() -> bool:
    """Whether this process's children can enclose themselves; tried for real, in a child."""
    with tempfile.TemporaryDirectory(prefix="pypto-op-") as folder:
        scratch = Path(folder) / "runs" / "one"
        scratch.mkdir(parents=True)
        child = os.fork()
        if child == 0:
            _end_with(lambda: _enter_and_fork(scratch))
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def _enter_and_fork(scratch: Path) -> None:
    enter(Enclosure(scratch))
    child = os.fork()
    if child == 0:
        _end_with(lambda: _settle_and_write(scratch))
    if os.waitpid(child, 0)[1] != 0:
        raise OSError("the enclosure does not hold together")


def _settle_and_write(scratch: Path) -> None:
    settle()
    (scratch / "file").write_text("x")


def _end_with(action: Callable[[], None]) -> NoReturn:
    """Do something and end this process: with 0 when it went well, with 1 when not."""
    code = 1
    try:
        action()
        code = 0
    except OSError:
        code = 1
    finally:
        os._exit(code)


def _hide(path: Path) -> None:
    if path.is_dir():
        linux.mount("none", path, "tmpfs", linux.READ_ONLY, "size=4k,mode=755")
    elif path.exists():
        linux.mount("/dev/null", path, None, linux.BIND)


def _show_alone(scratch: Path) -> None:
    """Cover the folder that holds `scratch`, so that only `scratch` is left of it."""
    handle = os.open(scratch, os.O_PATH | os.O_DIRECTORY)
    try:
        linux.mount("none", scratch.parent, "tmpfs", 0, "size=64k,mode=755")
        scratch.mkdir()
        linux.mount(f"/proc/self/fd/{handle}", scratch, None, linux.BIND)
    finally:
        os.close(handle)


def limit_memory(megabytes: int) -> None:
    """Cap what this process and each of its children can allocate, and how long a file they can write.

    The judge watches resident memory besides.
    """
    cap = data_bytes(os.getpid()) + (megabytes + _SLACK_MB) * _MIB
    resource.setrlimit(resource.RLIMIT_DATA, (cap, cap))
    resource.setrlimit(resource.RLIMIT_FSIZE, (megabytes * _MIB, megabytes * _MIB))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        # When memory runs out all the same, the kernel ends the candidate first, not its judge.
        Path("/proc/self/oom_score_adj").write_text("1000")
    except OSError:
        return
