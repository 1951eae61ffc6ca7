"""An audit hook that refuses what a candidate may not do, and remembers each refusal.

It covers everything that goes through Python: `open`, imports, `os`, `subprocess`, sockets; and the ways from a
candidate to the worker's own objects, which share its interpreter: frames, `gc`, traces. Helper files that a candidate
loads are held to the same, and are searched for back doors before they run. It does not cover C
code that calls the system directly (a C extension, or ctypes loaded before); the name spaces of `isolation` do,
where there are any. A refusal is a PermissionError inside the candidate; swallowing it does not help, since the
run is reported as forbidden all the same.
"""

from __future__ import annotations

import functools
import importlib
import os
import re
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pypto_op import back_doors
from pypto_op.backends.worker import askers
from pypto_op.backends.worker.closure import is_cache
from pypto_op.backends.worker.kernel_text import is_foreign
from pypto_op.backends.worker.source_check import back_door
from pypto_op.backends.worker.trusted import inside, is_installed, is_trusted
from pypto_op.vocabulary import Artifact
from pypto_op.workspace import OpWorkspace

_READING = 0
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

_STARTS_PROGRAM = {"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "pty.spawn"}
_USES_NETWORK = {"socket.connect", "socket.bind", "socket.sendto", "socket.getaddrinfo", "socket.sendmsg"}
_LOADS_CODE = {"ctypes.dlopen"}
_OTHER_CODE = "run code that is not in its file"
_MAKES_CODE = {"exec", "code.__new__"}
_UNPICKLES = re.compile(
    r"collections\.(OrderedDict|defaultdict|deque)|torch\._utils\._rebuild_\w+|torch\.\w*Storage|torch\.storage\.\w*Storage"
    r"|torch\.serialization\._get_layout|torch\.(Size|Tensor|device|dtype|\w*(int|float|complex)\d\w*|bool|half|double|long|short)"
    r"|torch\.nn\.parameter\.Parameter|numpy(\._?core\.multiarray)?\.(_reconstruct|scalar|ndarray|dtype|_frombuffer)"
    r"|numpy\._?core\.numeric\._frombuffer|numpy\.dtypes\.\w+|_codecs\.encode"
    r"|builtins\.(set|frozenset|dict|list|tuple|slice|complex|bytearray|range|int|float|str|bool|bytes)"
)
"""What a pickle may name: tensors, arrays and plain data. A pickle that names anything else can run code."""
_FRAMES = {"tb_frame", "gi_frame", "cr_frame", "ag_frame"}
_TURNS_A_FUNCTION = {"__code__", "__defaults__", "__kwdefaults__"}
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


_MUTANTS = "/impls/"
"""In the path of a mutant (`mutation.hunt`)."""

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
    """Where a candidate may read and write."""

    scratch: str  # may be read and written
    workspace: OpWorkspace  # the operator, whose goldens, tests and `eval/` may not be read
    own: tuple[str, ...]  # files that may be read wherever they lie: the candidate itself
    hidden: tuple[str, ...]  # further files and folders that may not be read

    def may_read(self, path: str) -> bool:
        """Whether `path`, absolute and resolved, may be read."""
        if path in self.own or inside(path, self.scratch) or self._is_a_mutants(path):
            return True
        if any(inside(path, hidden) for hidden in (*self.hidden, str(self.workspace.eval_dir))):
            return False
        return self.workspace.artifact_of(_source_of(path))[0] not in _HIDDEN_KINDS

    def _is_a_mutants(self, path: str) -> bool:
        """Whether `path` lies in the folder of a candidate that lies in `_debug/`: beside it are links to its helpers alone."""
        folders = (str(Path(own).parent) for own in self.own)
        mutants = [folder for folder in folders if inside(folder, str(self.workspace.debug_dir)) and _MUTANTS in folder]
        return any(inside(path, folder) for folder in mutants)

    def may_import(self, name: str) -> bool:
        """Whether a module may be imported, judged by its name: a hidden file may be out of sight altogether."""
        if name.partition(".")[0] == _OWN_PACKAGE:
            return False
        folders = (self.workspace.root, self.workspace.modules_dir, self.workspace.eval_dir)
        file = name.rpartition(".")[2] + ".py"
        return all(self.workspace.artifact_of(folder / file)[0] not in _HIDDEN_KINDS for folder in folders)

    def may_write(self, path: str) -> bool:
        """Whether `path`, absolute and resolved, may be written, made or removed."""
        return inside(path, self.scratch) or path in ("/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty")


def fence_of(document: dict[str, Any]) -> Fence:
    """Return the fence of a session's candidate.

    Args:
        document: the session's document, see `pypto_op.backends.session`.
    """
    workspace = OpWorkspace(Path(document["op_dir"]), Path(document["op_dir"]).name)
    own = os.path.realpath(document["impl"])
    hidden = tuple(document["enclosure"]["hidden"])
    return Fence(os.path.realpath(document["enclosure"]["scratch"]), workspace, (own,), hidden)


class Guard:
    """The hook and its memory. A hook cannot be removed, so it is armed and disarmed instead."""

    def __init__(self, fence: Fence) -> None:
        self._fence = fence
        self._offences: list[str] = []
        self._armed = False

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
        if not self._armed or askers.BUSY.on:
            return
        check = _CHECKS.get(event)
        if check is None:
            return
        told = askers.plain(arguments)
        with askers.BUSY:  # resolving a path raises audit events of its own
            offence = check(self._fence, told)
            if offence and self._excuses(event):
                return
        if offence:
            self._offences.append(offence)
            if event in back_doors.FORKS:
                return  # the copy may go on: it ends with the session, and the verdict is settled
            raise PermissionError(f"forbidden to a candidate: {offence}")

    # Python asks each hook for this before each event; where it is missing, to say so takes as long as the rest of the event.
    _hook.__cantrace__ = False  # type: ignore[attr-defined]

    def _excuses(self, event: str) -> bool:
        """Whether what was seen is no offence after all; asked of what would be one alone, since nearly all events are none."""
        return False


def _announced(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function` with an audit event of ours before each call; Python raises none for threads before 3.12."""

    @functools.wraps(function)
    def announced(*args: Any, **kwargs: Any) -> Any:
        sys.audit(_BESIDE_EVENT, *args)
        return function(*args, **kwargs)

    return announced


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
    return path[len(root) + 1 :] if inside(path, root) else path[:120]


def _check_open(fence: Fence, arguments: tuple[Any, ...]) -> str | None:
    path = _resolved(arguments[0])
    if path is None:
        return None
    mode = arguments[1] if len(arguments) > 1 else None
    flags = arguments[2] if len(arguments) > 2 and isinstance(arguments[2], int) else _READING
    writes = any(letter in mode for letter in "wax+") if isinstance(mode, str) else bool(flags & _WRITING)
    if not fence.may_read(path):
        return f"open {_shown(path, fence)}"
    if path.endswith(".pyc") and not is_trusted(path) and not is_cache(path):
        return f"load byte code in the place of a source ({_shown(path, fence)})"
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
    library = _resolved(arguments[1]) if len(arguments) > 1 else None
    if library is not None and not is_trusted(library):
        return f"load a C library ({_shown(library, fence)})"
    return f"import {name}" if isinstance(name, str) and not fence.may_import(name) else None


def _check_compile(fence: Fence, arguments: tuple[Any, ...]) -> str | None:
    """Text becomes code: a helper's file on import, or text that a library was handed; both are searched like the kernel."""
    if askers.asked_by_candidate():
        return _OTHER_CODE
    text, name = (*arguments, None, None)[:2]
    if not isinstance(text, (str, bytes)):
        return None
    if is_foreign(text, fence.own):
        return "build a kernel from a text that does not stand in its file"
    file = os.fsdecode(name) if isinstance(name, (str, bytes)) else ""
    helper = bool(askers.machinery()) and not is_trusted(file)
    if askers.machinery() and askers.by_own_loader():
        return "load code by a loader of its own"
    if not helper and (askers.machinery() or askers.made_by_package()):
        return None
    door = back_door(text)
    return f"reach into the interpreter by {door} of {_shown(file, fence) if helper else 'a text'}" if door else None


def _check_byte_code(fence: Fence, arguments: tuple[Any, ...]) -> str | None:
    by = askers.machinery()
    if askers.asked_by_candidate():
        return _OTHER_CODE
    return "load byte code in the place of a source" if "zipimport" in by or (by and askers.by_own_loader()) else None


def _check_pickle(fence: Fence, arguments: tuple[Any, ...]) -> str | None:
    name = ".".join(str(argument) for argument in arguments)
    return None if _UNPICKLES.fullmatch(name) else f"run a pickle that names {name[:80]}"


def _check_beside(fence: Fence, arguments: tuple[Any, ...]) -> str | None:
    """Code that runs beside a launch can write the outputs while the kernel is said to; pypto's own threads may run."""
    if any(isinstance(argument, signal.Handlers) for argument in arguments):
        return None  # a signal that is ignored, or ends the process, runs nothing
    asked = askers.asked_by_candidate(lambda file: "/pypto/" not in file and "/torch/" not in file)
    return "run code beside the kernel (a thread, a copy of the process, a signal handler)" if asked else None


def _if_candidate(what: str) -> Callable[[Fence, tuple[Any, ...]], str | None]:
    return lambda fence, arguments: what if askers.asked_by_candidate() else None


def _check_attribute(fence: Fence, arguments: tuple[Any, ...]) -> str | None:
    """Refuse attributes that lead to frames: a frame leads to the worker's own, and so to the counter of launches."""
    frame = len(arguments) > 1 and arguments[1] in _FRAMES
    return "look at the frames of its callers" if frame and askers.asked_by_candidate() else None


def _check_set_attribute(fence: Fence, arguments: tuple[Any, ...]) -> str | None:
    """A function that stays the same object may be given other code, or other defaults: pypto's, torch's or the judge's."""
    turned = len(arguments) > 1 and arguments[1] in _TURNS_A_FUNCTION
    return "give a function other code" if turned and askers.asked_by_candidate() else None


def _always(what: str) -> Callable[[Fence, tuple[Any, ...]], str | None]:
    return lambda fence, arguments: what


def _check_dlopen(fence: Fence, arguments: tuple[Any, ...]) -> str | None:
    """Refuse a library, but for one that an installed package brings along and loads when it is imported (torchvision's)."""
    if not arguments or arguments[0] is None:
        return None
    if not isinstance(arguments[0], (str, bytes, os.PathLike)):
        return "load a C library"
    library = Path(os.fsdecode(arguments[0]))
    if library.is_absolute() and is_installed(str(library)) and askers.package_is_imported():
        return None
    return f"load a C library ({library.name[:80]})"


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
    **dict.fromkeys(_MAKES_CODE, _if_candidate(_OTHER_CODE)),
    "compile": _check_compile,
    "marshal.loads": _check_byte_code,
    "pickle.find_class": _check_pickle,
    back_doors.FRAME_OF_CALLER: _if_candidate("look at the frames of its callers"),
    "object.__getattr__": _check_attribute,
    "object.__setattr__": _check_set_attribute,
}
