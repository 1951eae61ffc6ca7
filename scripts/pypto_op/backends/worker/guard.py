"""An audit hook that refuses what a candidate has no business with, and remembers that it asked.

It covers everything that goes through Python: `open`, imports, `os`, `subprocess`, sockets; and the ways from a
candidate to the worker's own objects, which share its interpreter: frames, `gc`, traces. It does not cover C
code that calls the system directly (a C extension, or ctypes loaded before); the name spaces of `isolation` do,
where there are any. A refusal is a PermissionError inside the candidate; swallowing it does not help, since the
run is reported as forbidden all the same.
"""

from __future__ import annotations

import functools
import importlib
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import Any

from pypto_op import back_doors
from pypto_op.vocabulary import Artifact
from pypto_op.workspace import OpWorkspace

_READING = 0
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

_STARTS_PROGRAM = {"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "pty.spawn"}
_USES_NETWORK = {"socket.connect", "socket.bind", "socket.sendto", "socket.getaddrinfo", "socket.sendmsg"}
_LOADS_CODE = {"ctypes.dlopen"}
_MAKES_CODE = {"compile", "exec", "code.__new__", "marshal.loads"}
_FRAMES = {"tb_frame", "gi_frame", "cr_frame", "ag_frame"}
_HELPERS_TO_FRAMES = ("/inspect.py", "/traceback.py", "/types.py")
_OWN_PACKAGE = "pypto_op"
_BESIDE_EVENT = "pypto_op.runs_beside"
_CHANGES_FILES = {
    "os.remove",
    "os.rename",
    "os.rmdir",
    "os.mkdir",
    "os.link",
    "os.symlink",
    "os.truncate",
    "os.chmod",
    "os.chown",
    "shutil.rmtree",
    "shutil.move",
    "shutil.copyfile",
}
_LISTS = {"os.listdir", "os.scandir"}


_HIDDEN_KINDS = frozenset(
    {
        Artifact.GOLDEN,
        Artifact.MODULE_GOLDEN,
        Artifact.TEST,
        Artifact.MODULE_TEST,
        Artifact.TEST_INPUTS,
        Artifact.SUITE,
        Artifact.RUNNER,
        Artifact.REPORT,
        Artifact.STATE,
        Artifact.JOURNAL,
        Artifact.PLAN,
        Artifact.DEBUG,
    }
)
"""What a candidate may not read of its own operator, besides everything under `eval/`."""


@dataclass(frozen=True)
class Fence:
    """Where a candidate may read and write.

    Attributes:
        scratch: may be read and written.
        workspace: the operator, whose goldens, tests and `eval/` may not be read.
        own: files that may be read wherever they lie: the candidate itself.
        hidden: further files and folders that may not be read.
    """

    scratch: str
    workspace: OpWorkspace
    own: tuple[str, ...]
    hidden: tuple[str, ...]

    def may_read(self, path: str) -> bool:
        """Whether `path`, absolute and resolved, may be read."""
        if path in self.own or _inside(path, self.scratch):
            return True
        if any(_inside(path, hidden) for hidden in (*self.hidden, str(self.workspace.eval_dir))):
            return False
        return self.workspace.artifact_of(_source_of(path))[0] not in _HIDDEN_KINDS

    def may_import(self, name: str) -> bool:
        """Whether a module may be imported, judged by its name: a hidden file may be out of sight altogether."""
        if name.partition(".")[0] == _OWN_PACKAGE:
            return False
        folders = (self.workspace.root, self.workspace.modules_dir, self.workspace.eval_dir)
        file = name.rpartition(".")[2] + ".py"
        return all(self.workspace.artifact_of(folder / file)[0] not in _HIDDEN_KINDS for folder in folders)

    def may_write(self, path: str) -> bool:
        """Whether `path`, absolute and resolved, may be written, made or removed."""
        return _inside(path, self.scratch) or path in ("/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty")


class Guard:
    """The hook and its memory. A hook cannot be removed, so it is armed and disarmed instead."""

    def __init__(self, fence: Fence) -> None:
        self._fence = fence
        self._offences: list[str] = []
        self._armed = False
        self._busy = False

    def install(self) -> None:
        """Add the hook to this interpreter; it stays idle until it is armed."""
        sys.addaudithook(self._hook)
        for beside in back_doors.STARTS_THREAD | {back_doors.HANDLES_SIGNAL}:
            home, _, name = beside.partition(".")
            module = importlib.import_module(home)
            function = getattr(module, name, None)
            if function is not None:
                setattr(module, name, _announced(function))

    def arm(self, on: bool = True) -> None:
        """Watch, or stop watching, what happens from now on."""
        self._armed = on

    def take_offences(self) -> list[str]:
        """Return what was refused since the last call, each as one line."""
        taken, self._offences = self._offences, []
        return taken

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self._armed or self._busy:
            return
        check = _CHECKS.get(event)
        if check is None:
            return
        self._busy = True  # resolving a path raises audit events of its own
        try:
            offence = check(self._fence, arguments)
        finally:
            self._busy = False
        if offence:
            self._offences.append(offence)
            if event in back_doors.FORKS:
                return  # the copy may go on: it ends with the session, and the verdict is settled
            raise PermissionError(f"forbidden to a candidate: {offence}")


def _announced(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function` with an audit event of ours before each call; Python raises none for threads before 3.12."""

    @functools.wraps(function)
    def announced(*args: Any, **kwargs: Any) -> Any:
        sys.audit(_BESIDE_EVENT, *args)
        return function(*args, **kwargs)

    return announced


def _inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder + "/")


def _source_of(path: str) -> str:
    """Return the source file that a byte-code file was compiled from; any other path unchanged."""
    folder, _, name = path.rpartition("/")
    if name.endswith(".pyc") and folder.endswith("/__pycache__"):
        return f"{folder[: -len('/__pycache__')]}/{name.partition('.')[0]}.py"
    return path


def _resolved(path: Any) -> str | None:
    """Return an absolute path without links, or None for what is no path (a file descriptor)."""
    if isinstance(path, int) or path is None:
        return None
    try:
        return os.path.realpath(os.fsdecode(path))
    except (TypeError, ValueError):
        return None


def _shown(path: str, fence: Fence) -> str:
    """Return a path as a report may show it: relative to the operator where it lies there."""
    root = str(fence.workspace.root)
    return path[len(root) + 1 :] if _inside(path, root) else path[:120]


def _check_open(fence: Fence, arguments: tuple[Any, ...]) -> str | None:
    path = _resolved(arguments[0])
    if path is None:
        return None
    mode = arguments[1] if len(arguments) > 1 else None
    flags = arguments[2] if len(arguments) > 2 and isinstance(arguments[2], int) else _READING
    writes = any(letter in mode for letter in "wax+") if isinstance(mode, str) else bool(flags & _WRITING)
    if not fence.may_read(path):
        return f"open {_shown(path, fence)}"
    if writes and not fence.may_write(path):
        return f"write {_shown(path, fence)}"
    return None


def _check_change(fence: Fence, arguments: tuple[Any, ...]) -> str | None:
    for argument in arguments:
        if isinstance(argument, (str, bytes, os.PathLike)):
            path = _resolved(argument)
            if path is not None and not fence.may_write(path):
                return f"change {_shown(path, fence)}"
    return None


def _check_list(fence: Fence, arguments: tuple[Any, ...]) -> str | None:
    path = _resolved(arguments[0] if arguments else ".")
    if path is not None and not fence.may_read(path):
        return f"list {_shown(path, fence)}"
    return None


def _check_import(fence: Fence, arguments: tuple[Any, ...]) -> str | None:
    name = arguments[0] if arguments else None
    return f"import {name}" if isinstance(name, str) and not fence.may_import(name) else None


def _asked_by_candidate(fence: Fence, passed: Callable[[str], bool] = lambda file: file.endswith(_HELPERS_TO_FRAMES)) -> bool:
    """Whether the candidate's own code asks, directly or through files that `passed` lets through.

    `logging`, `warnings`, `collections` and the like ask for frames and make code all the time, on their own behalf.
    """
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        file = frame.f_code.co_filename
        if file in fence.own:
            return True
        if file != __file__ and not passed(file):
            return False
        frame = frame.f_back
    return False


def _check_beside(fence: Fence, arguments: tuple[Any, ...]) -> str | None:
    """Code that runs beside a launch can write the outputs while the kernel is said to; pypto's own threads may run."""
    if any(isinstance(argument, signal.Handlers) for argument in arguments):
        return None  # a signal that is ignored, or ends the process, runs nothing
    asked = _asked_by_candidate(fence, lambda file: "/pypto/" not in file and "/torch/" not in file)
    return "run code beside the kernel (a thread, a copy of the process, a signal handler)" if asked else None


def _if_candidate(what: str) -> Callable[[Fence, tuple[Any, ...]], str | None]:
    return lambda fence, arguments: what if _asked_by_candidate(fence) else None


def _check_attribute(fence: Fence, arguments: tuple[Any, ...]) -> str | None:
    """A frame leads to the worker's, and so to what counts the launches."""
    frame = len(arguments) > 1 and arguments[1] in _FRAMES
    return "look at the frames of its callers" if frame and _asked_by_candidate(fence) else None


def _always(what: str) -> Callable[[Fence, tuple[Any, ...]], str | None]:
    return lambda fence, arguments: what


def _check_dlopen(fence: Fence, arguments: tuple[Any, ...]) -> str | None:
    return "load a C library" if arguments and arguments[0] is not None else None


_CHECKS: dict[str, Callable[[Fence, tuple[Any, ...]], str | None]] = {
    "open": _check_open,
    **dict.fromkeys({_BESIDE_EVENT, *back_doors.FORKS}, _check_beside),
    "import": _check_import,
    **dict.fromkeys(_CHANGES_FILES, _check_change),
    **dict.fromkeys(_LISTS, _check_list),
    **dict.fromkeys(_STARTS_PROGRAM, _always("start another program")),
    **dict.fromkeys(_USES_NETWORK, _always("use the network")),
    **dict.fromkeys(_LOADS_CODE, _check_dlopen),
    **dict.fromkeys(back_doors.FINDS_OBJECTS, _always("look through the interpreter's objects")),
    **dict.fromkeys(back_doors.WATCHES, _if_candidate("watch the interpreter")),
    **dict.fromkeys(_MAKES_CODE, _if_candidate("run code that is not in its file")),
    back_doors.FRAME_OF_CALLER: _if_candidate("look at the frames of its callers"),
    "object.__getattr__": _check_attribute,
}
