"""Tells for an audit hook whether the candidate's code asks for something, or a library on its own behalf.

Asked from an audit hook; frames of this package lie between the hook and the answer, and are passed over.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from gc import disable as _collect_nothing
from gc import enable as _collect_again
from gc import isenabled as _collects
from types import CodeType, FrameType, FunctionType
from typing import Any

from pypto_op.backends.worker.trusted import is_installed, is_trusted

_HERE = __file__.rpartition("/")[0] + "/"
_HOOKS = (_HERE, *(f"{_HERE.rpartition('/backends/')[0]}/triton/run/watching/{name}.py" for name in ("fence", "texts")))
"""Files of hooks, whose frames lie between an event and the answer: those of this package, and the Triton judge's own."""
_HELPERS_TO_FRAMES = ("/inspect.py", "/traceback.py", "/types.py")
_GIVES_FRAME = ("/logging/__init__.py", ("<lambda>", "currentframe"))
_ancestors, _members = type.__dict__["__mro__"].__get__, type.__dict__["__dict__"].__get__
"""What a metaclass cannot answer in the place of its class."""
_IMPORTS = ("<frozen importlib", "<frozen zipimport")
_PARSES = ("/ast.py",)


class _Busy:
    """`with BUSY:` around what a hook does for itself, which is nobody else's doing and is not watched.

    No code of a candidate may run meanwhile. So nothing is collected, since a collection calls `__del__` and the callbacks
    of weak references, and a hook looks at plain values alone (`plain`).
    """

    on = False
    _collected = False

    def __enter__(self) -> None:
        self._collected = _collects()
        _collect_nothing()
        self.on = True

    def __exit__(self, *_: object) -> None:
        self.on = False
        if self._collected:
            _collect_again()


BUSY = _Busy()
_SOMETHING = object()


def plain(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the arguments of an event with nothing in them whose methods a candidate may have written.

    A path is asked for its text here, while its code is still watched; an object of another kind becomes one that says nothing.
    """
    return tuple(
        [_plain(item) for item in list(argument)] if type(argument) is list else _plain(argument) for argument in arguments
    )


def _plain(value: Any) -> Any:
    kind = type(value)
    if value is None or kind in (str, bytes, int, signal.Handlers):
        return value
    for base in (str, bytes):
        if issubclass(kind, base):
            return base.__getitem__(value, slice(None))  # of a subclass, a copy of the base
    if issubclass(kind, int):
        return int.__int__(value)
    if kind in (bytearray, memoryview):
        return bytes(value)
    return _plain(os.fspath(value)) if hasattr(kind, "__fspath__") else _SOMETHING


def asked_by_candidate(passed: Callable[[str], bool] | None = None) -> bool:
    """Whether code that is not trusted asks, directly or through library files that `passed` lets through.

    `logging`, `warnings`, `collections` and the like ask for frames and make code all the time, on their own behalf.
    A helper's file, and text that was made into code, count as the candidate's like its own file.

    Args:
        passed: called with a file name; None: what only hands frames on to its caller.
    """
    for frame in _frames():
        if not is_trusted(frame.f_code.co_filename):
            return True
        if not (_hands_frames_on(frame) if passed is None else passed(frame.f_code.co_filename)):
            return False
    return False


def asked_directly(libraries: tuple[str, ...]) -> bool:
    """Whether untrusted code asks, with only these library files between, and no file of this package.

    Cheap, since it is asked often: it looks no further than the first other file.
    """
    frame = sys._getframe(2)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.endswith(libraries):
            return not file.startswith(_HERE) and not is_trusted(file)
        frame = frame.f_back  # type: ignore[assignment]
    return False


def importer() -> str:
    """Return the file of the code that asks for an import, or that has text made into code."""
    files = (frame.f_code.co_filename for frame in _frames())
    return next((file for file in files if not file.startswith(_IMPORTS) and not file.endswith(_PARSES)), "")


def made_by_package() -> bool:
    """Whether an installed package makes code from text, by itself or by the standard library, as torch and pypto do."""
    files = (frame.f_code.co_filename for frame in _frames())
    return is_installed(next((file for file in files if is_installed(file) or not is_trusted(file)), ""))


def asked_through(libraries: tuple[str, ...]) -> bool:
    """Whether code that is not trusted asks, through nothing but these library files."""
    files = (frame.f_code.co_filename for frame in _frames())
    return not is_trusted(next((file for file in files if not file.endswith(libraries)), "<frozen >"))


def argument_of(reader: str, name: str) -> tuple[bool, Any]:
    """Return whether a library's file has text parsed, and what an argument of that function is.

    Args:
        reader: how the path of the file ends.
        name: of the argument.
    """
    frame = next((frame for frame in _frames() if not frame.f_code.co_filename.endswith(_PARSES)), None)
    if frame is None or not frame.f_code.co_filename.endswith(reader) or not is_installed(frame.f_code.co_filename):
        return False, None
    return True, frame.f_locals.get(name)


def machinery() -> str:
    """Return the file of the import machinery when it is what asks; "" when something else does."""
    file = next((frame.f_code.co_filename for frame in _frames()), "")
    return file if file.startswith(_IMPORTS) else ""


def package_is_imported() -> bool:
    """Whether an installed package asks while it is imported, with no code of the candidate's between."""
    for frame in _frames():
        file = frame.f_code.co_filename
        if not is_trusted(file):
            return False
        if frame.f_code.co_name == "<module>" and is_installed(file):
            return True
    return False


def by_own_loader() -> bool:
    """Whether the import machinery works for a loader with methods that are not trusted, which may show it anything."""
    for frame in _frames():
        if frame.f_code.co_filename.startswith(_IMPORTS):
            kinds = _ancestors(type(frame.f_locals.get("self")))
            methods = [value for kind in kinds for value in _members(kind).values() if type(value) is FunctionType]
            if any(not is_trusted(method.__code__.co_filename) for method in methods):
                return True
    return False


def place_of_caller() -> tuple[str, int]:
    """Return file and line of the code that called the function which asks; no frame leaves this function."""
    with BUSY:  # the question is ours, not the caller's
        frame = sys._getframe(2)
        return frame.f_code.co_filename, frame.f_lineno


def code_of(frame: FrameType) -> CodeType:
    """Return the code of a frame, for a function that Python calls at every call: to ask is an event, and our own is none.

    As `with BUSY`, written out: the events took a third of the time of a candidate that is traced.
    """
    busy, collected = BUSY.on, _collects()
    _collect_nothing()
    try:
        BUSY.on = True
        return frame.f_code
    finally:
        BUSY.on = busy
        if collected:
            _collect_again()


def _frames() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if not frame.f_code.co_filename.startswith(_HOOKS):
            yield frame
        frame = frame.f_back


def _hands_frames_on(frame: FrameType) -> bool:
    code = frame.f_code
    gives = code.co_filename.endswith(_GIVES_FRAME[0]) and code.co_name in _GIVES_FRAME[1]
    return gives or code.co_filename.endswith(_HELPERS_TO_FRAMES)
