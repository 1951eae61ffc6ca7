"""Records what a process loads beside the file that it was started for: helpers, tables, whatever lies in the workspace.

A verdict is about all of it. What is recorded: every file of the user's that is opened for reading, by whomever and by
whatever way (import, a loader, `runpy`, a zip, `open`, numpy, torch); C libraries; folders that are listed; and files
that were looked for and were not there, since one that appears would be loaded in their place. Byte code of a source
is never loaded: what runs is what lies there as a source.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.machinery
import os
import posix
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import safetensors
import safetensors.torch
import torch

from pypto_op.backends.worker import askers
from pypto_op.backends.worker.trusted import inside, is_systems, is_trusted
from pypto_op.hashing import ABSENT, listing_hash

_WRITES_ONLY = os.O_WRONLY
_LOOKS = "pypto_op.looks_for"
_BY_PATH = ("genericpath.py", "posixpath.py", "pathlib.py", "/glob.py", "/os.py", "/shutil.py") + (
    "<frozen genericpath>",
    "<frozen posixpath>",
    "<frozen os>",
)
_NO_ZIP = next((place for place in sys.path if place.endswith(".zip") and not os.path.exists(place)), None)
"""Where a zip of the standard library would lie; it stands in every `sys.path`."""
_FORMS = (*importlib.machinery.EXTENSION_SUFFIXES, ".py", ".pyc")


def is_cache(path: str) -> bool:
    """Whether a path is that of byte code which stands beside its source."""
    return path.endswith(".pyc") and os.path.basename(os.path.dirname(path)) == "__pycache__"


class Closure:
    """What was loaded while it watched.

    Args:
        scratch: the session's folder, which does not count.
    """

    def __init__(self, scratch: str) -> None:
        self._scratch = os.path.realpath(scratch)
        self._files: dict[str, str] = {}
        self._known: dict[tuple[str, int, int, int], str] = {}
        self._watching = False

    def install(self) -> None:
        """Add the hook to this process; it stays idle until it watches."""
        sys.addaudithook(self._hook)
        for name in ("stat", "lstat", "access"):
            setattr(os, name, self._looking(getattr(posix, name)))
        posix.open = os.open = _placing(posix.open)
        _announce_readers()

    def watch(self, on: bool = True) -> None:
        """Watch, or stop watching, from now on."""
        self._watching = on

    def files(self) -> dict[str, str]:
        """Return absolute path -> sha256, `ABSENT` for what was looked for; folders that were listed end with a slash."""
        return dict(self._files)

    def take(self) -> dict[str, str]:
        """Return what `files` does, and forget it."""
        taken, self._files = self._files, {}
        return taken

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self._watching or askers.BUSY.on:
            return
        note = _NOTES.get(event)
        if note is None:
            return
        arguments = askers.plain(arguments)
        with askers.BUSY:
            for path in note(arguments):
                self._note(path)
        path = os.fsdecode(arguments[0]) if event == "open" and _is_path(arguments[0]) else ""
        if is_cache(path) and not is_trusted(path):
            raise PermissionError("byte code that stands beside its source is not loaded")

    _hook.__cantrace__ = False  # type: ignore[attr-defined]

    def _note(self, path: str) -> None:
        listed = path.endswith("/")
        shown, resolved = os.path.abspath(path), os.path.realpath(path)
        if shown == _NO_ZIP or (self._others(resolved) and self._others(shown)):
            return
        if not listed and os.path.isdir(resolved):
            return
        digest = listing_hash(resolved) if listed else self._digest(resolved)
        for name in {shown, resolved}:
            key = name + "/" if listed else name
            before = self._files.setdefault(key, digest)
            if before != digest:  # it changed under way: a hash that no file has
                self._files[key] = hashlib.sha256(f"{before} {digest}".encode()).hexdigest()

    def _others(self, path: str) -> bool:
        return inside(path, self._scratch) or is_trusted(path) or is_systems(path)

    def _digest(self, path: str) -> str:
        try:
            status = os.stat(path)
            key = (path, status.st_ino, status.st_mtime_ns, status.st_size)
            if key not in self._known:
                with open(path, "rb") as file:
                    self._known[key] = hashlib.file_digest(file, "sha256").hexdigest()
            return self._known[key]
        except OSError:
            return ABSENT

    def _looking(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return `os.stat` or a relative of it, with an event when user code asks whether a file is there."""

        @functools.wraps(function)
        def looking(path: Any, *args: Any, **kwargs: Any) -> Any:
            if self._watching and not askers.BUSY.on and _is_path(path) and askers.asked_directly(_BY_PATH):
                sys.audit(_LOOKS, path)
            return function(path, *args, **kwargs)

        return looking


def _is_path(value: Any) -> bool:
    return isinstance(value, (str, bytes, os.PathLike))


def _opened(arguments: tuple[Any, ...]) -> Iterator[str]:
    path, mode, flags = (*arguments, None, None)[:3]
    if not _is_path(path):
        return
    writes = isinstance(flags, int) and bool(flags & _WRITES_ONLY)
    if is_cache(os.fsdecode(path)):
        return  # it is never loaded, see `_hook`
    if not (writes if not isinstance(mode, str) else set(mode) & set("wax") and "+" not in mode):
        yield os.fsdecode(path)
        if askers.machinery() and not is_trusted(os.fsdecode(path)):
            yield from _before(os.fsdecode(path))


def _listed(arguments: tuple[Any, ...]) -> Iterator[str]:
    path = arguments[0] if arguments and arguments[0] is not None else "."
    if _is_path(path) and askers.asked_through(_BY_PATH):
        yield os.path.join(os.fsdecode(path), "")


def _named(arguments: tuple[Any, ...]) -> Iterator[str]:
    if arguments and _is_path(arguments[0]):
        yield os.fsdecode(arguments[0])


def _imported(arguments: tuple[Any, ...]) -> Iterator[str]:
    """Yield the C library that is imported, or every file that would be taken for a module instead of what is found."""
    name, library, path = (*arguments, None, None, None)[:3]
    if _is_path(library):
        yield os.fsdecode(library)
    elif isinstance(name, str) and not is_trusted(askers.importer()):
        parent, _, leaf = name.rpartition(".")
        yield from _would_be(leaf, getattr(sys.modules.get(parent), "__path__", ()) if parent else path or ())


def _would_be(leaf: str, places: Iterable[Any]) -> Iterator[str]:
    """Yield the files of the user's that a module's name may stand for, up to the first that is there."""
    for place in places:
        if isinstance(place, str) and place != _NO_ZIP and not is_trusted(place or "."):
            for file in _forms_of(os.path.join(place or os.getcwd(), leaf)):
                if os.path.isfile(file):
                    return
                yield file


def _before(source: str) -> Iterator[str]:
    """Yield the files that would be imported in the place of a source that is being imported."""
    base = source.rpartition(".")[0]
    base = os.path.dirname(base) if base.endswith("/__init__") else base
    folder, _, leaf = base.rpartition("/")
    places = sys.path[: sys.path.index(folder) + 1] if folder in sys.path else [folder]
    yield from _would_be(leaf, places)


def _forms_of(base: str) -> Iterator[str]:
    """Yield what a module of this name may be, in the order in which Python looks."""
    yield from (f"{base}/__init__{form}" for form in _FORMS)
    yield from (base + form for form in _FORMS)


_NOTES: dict[str, Callable[[tuple[Any, ...]], Iterable[str]]] = {
    "open": _opened,
    "os.listdir": _listed,
    "os.scandir": _listed,
    "ctypes.dlopen": _named,
    "sqlite3.connect": _named,
    "import": _imported,
    _LOOKS: _named,
}


def _placing(function: Callable[..., int]) -> Callable[..., int]:
    """Return `os.open` such that a name that is relative to a folder's descriptor is seen for what it is."""

    @functools.wraps(function)
    def placed(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if dir_fd is None or not _is_path(path):
            return function(path, flags, mode)
        place = os.readlink(f"/proc/self/fd/{dir_fd}")
        return function(os.path.join(place, os.fsdecode(path)), flags, mode)

    return placed


def _announce_readers() -> None:
    """Make the readers of torch and safetensors that open files in C say so, as Python's own `open` does."""
    for home, name in (
        (torch._C, "PyTorchFileReader"),
        (torch._C, "import_ir_module"),
        (torch.jit, "load"),
        (safetensors, "safe_open"),
        (safetensors.torch, "safe_open"),
    ):
        setattr(home, name, _announced(getattr(home, name)))
    for kind in (torch.UntypedStorage, torch.TypedStorage):
        kind.from_file = staticmethod(_announced(kind.from_file))  # type: ignore[method-assign]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the operator is there already is the point
        _LIBRARY.impl("from_file", _from_file, "CPU")  # type: ignore[no-untyped-call]


_LIBRARY = torch.library.Library("aten", "IMPL")  # type: ignore[no-untyped-call]


def _announced(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function, updated=())
    def reads(*args: Any, **kwargs: Any) -> Any:
        for value in (*args[:1], *kwargs.values()):
            if isinstance(value, (str, os.PathLike)):
                sys.audit("open", os.fspath(value), "r", 0)
        return function(*args, **kwargs)

    return reads


def _from_file(filename: str, shared: bool | None = None, size: int | None = 0, *, dtype: Any = None, **_: Any) -> torch.Tensor:
    """Read a file as `torch.from_file` does, by Python's `open`; what it returns is a copy."""
    with open(filename, "rb") as file:
        data = bytearray(file.read())
    return torch.frombuffer(data, dtype=dtype or torch.get_default_dtype(), count=size or 0)
