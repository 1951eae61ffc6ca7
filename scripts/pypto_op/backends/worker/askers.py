"""Whose code asks: the candidate's (any file that is not trusted), or a library's on its own behalf.

Asked from an audit hook; frames of this package lie between the hook and the answer, and are passed over.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import FrameType, FunctionType

from pypto_op.backends.worker.trusted import is_installed, is_trusted

_HERE = __file__.rpartition("/")[0] + "/"
_HELPERS_TO_FRAMES = ("/inspect.py", "/traceback.py", "/types.py")
_GIVES_FRAME = ("/logging/__init__.py", ("<lambda>", "currentframe"))
_IMPORTS = ("<frozen importlib", "<frozen zipimport")
_PARSES = ("/ast.py",)


class _Busy:
    """Whether a hook is at work: what it asks for itself is nobody else's doing."""

    on = False


BUSY = _Busy()


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
    """Whether code that is not trusted asks, through nothing but these library files and none of this package.

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


def machinery() -> str:
    """Return the file of the import machinery when it is what asks; "" when something else does."""
    file = next((frame.f_code.co_filename for frame in _frames()), "")
    return file if file.startswith(_IMPORTS) else ""


def by_own_loader() -> bool:
    """Whether the import machinery works for a loader with methods that are not trusted, which may show it anything."""
    for frame in _frames():
        if frame.f_code.co_filename.startswith(_IMPORTS):
            kinds = type(frame.f_locals.get("self")).__mro__
            methods = [value for kind in kinds for value in vars(kind).values() if isinstance(value, FunctionType)]
            if any(not is_trusted(method.__code__.co_filename) for method in methods):
                return True
    return False


def place_of_caller() -> tuple[str, int]:
    """Return file and line of the code that called the function which asks; no frame leaves this function."""
    BUSY.on = True  # the question is ours, not the caller's
    try:
        frame = sys._getframe(2)
        return frame.f_code.co_filename, frame.f_lineno
    finally:
        BUSY.on = False


def _frames() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if not frame.f_code.co_filename.startswith(_HERE):
            yield frame
        frame = frame.f_back


def _hands_frames_on(frame: FrameType) -> bool:
    code = frame.f_code
    gives = code.co_filename.endswith(_GIVES_FRAME[0]) and code.co_name in _GIVES_FRAME[1]
    return gives or code.co_filename.endswith(_HELPERS_TO_FRAMES)
