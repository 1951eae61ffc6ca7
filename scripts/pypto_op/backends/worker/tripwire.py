"""Ends a worker as soon as a candidate's code runs between two calls, where only the judge's code should run.

Such code sees open frames, and modules that are hidden from it elsewhere: a callback of the collector of garbage, or what is
called when a tensor ends. No kernel needs it. The process ends, since whatever was recorded in it may be replaced by then.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Iterable, Iterator
from gc import disable as _collect_nothing
from gc import enable as _collect_again
from pathlib import Path
from sys import setprofile as _watch
from types import CodeType, FrameType, FunctionType
from typing import Any

from pypto_op.backends.endings import TRIPPED
from pypto_op.backends.worker.trusted import is_trusted


class Tripwire:
    """Set while the judge's code runs, lifted while the candidate's does; the files of modules loaded so far may run."""

    def __init__(self) -> None:
        files = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
        self._known = frozenset(file for file in files if file)
        before, made = made_of_text()
        self._made = made | set(_made_in(module for name, module in list(sys.modules.items()) if name not in before))

    def set(self) -> None:
        """From now on nobody else's code may run; nothing is collected either."""
        _collect_nothing()
        _watch(self._look)

    def lift(self) -> None:
        """The candidate's code may run, under the guard."""
        _watch(None)
        _collect_again()

    def _look(self, frame: FrameType, event: str, argument: Any) -> None:
        if event != "call":
            return
        code = frame.f_code
        file = code.co_filename
        # A candidate's text may become code, too, by way of a library: only what was made from text before it may run.
        if file in self._known or is_trusted(file) or (file.startswith("<") and code in self._made):
            return
        place = f"{Path(file).name}:{frame.f_lineno}"
        os.write(2, f"pypto-op: {place} runs between two calls of the wrapper, while the judge looks\n".encode())
        os._exit(TRIPPED)


@functools.cache
def made_of_text() -> tuple[frozenset[str], frozenset[CodeType]]:
    """Return the modules that are loaded when this is first asked, and the code in them that was made from text.

    It takes a tenth of a second, so it is asked first in the process that workers are forked from.
    """
    return frozenset(sys.modules), frozenset(_made_in(list(sys.modules.values())))


def _made_in(modules: Iterable[Any]) -> Iterator[CodeType]:
    """Yield the code of the functions in modules and their classes that were made from text, as those of a data class are."""
    spaces = [vars(module) for module in modules if hasattr(module, "__dict__")]
    classes = {id(kind): kind for space in spaces for kind in list(space.values()) if issubclass(type(kind), type)}
    for space in (*spaces, *(vars(kind) for kind in classes.values())):
        for value in list(space.values()):
            function = value.__func__ if type(value) in (staticmethod, classmethod) else value
            if type(function) is FunctionType and function.__code__.co_filename.startswith("<"):
                yield function.__code__
