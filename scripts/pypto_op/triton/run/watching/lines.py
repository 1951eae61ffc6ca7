"""Records which lines of the implementation's files run while forward does, whatever led to them.

The static check follows code; Python has more ways to run some than any reader knows. So what ran is compared with what was
followed (`agreement`). A line is noted before it is executed. The record lies in the candidate's own process, so it is no
barrier against code that was followed and trusted.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

from pypto_op.backends.worker.askers import code_of
from pypto_op.triton.program import LAMBDA, Line
from pypto_op.triton.run.watching import rewriting

_OF_KERNELS = "maker of a kernel"
"""How the qualified names of bodies begin that Triton's interpreter runs (`rewriting`); their text is compared as a whole."""
_MAKES_KERNELS = rewriting.__file__


class Lines:
    """A context manager around a call of forward."""

    def __init__(self, own: frozenset[str]) -> None:
        self.ran: set[Line] = set()  # what ran in any call so far
        self.rests = False  # whether it looks away while the coming call's kernels run (`rest`)
        self._looks_away = False
        self._own = own
        self._files: dict[str, str] = {}
        self._held: Callable[..., Any] | None = None

    def __enter__(self) -> Lines:
        self._held = self._called
        threading.settrace(self._held)
        sys.settrace(self._held)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        sys.settrace(None)
        threading.settrace(None)
        self._looks_away = False

    def rest(self) -> None:
        """Look away: a kernel's body begins, and `kernel_guard` sees what it asks for.

        Python tells this object of every call, also those within Triton's interpreter, which is ten times as fast without.
        """
        if self.rests and sys.gettrace() is self._held:
            self._looks_away = True
            sys.settrace(None)

    def wake(self) -> None:
        """Look again: other code than a kernel's may run."""
        if self._looks_away and sys.gettrace() is None:
            sys.settrace(self._held)
        self._looks_away = False

    def is_active(self) -> bool:
        """Whether nobody took the record away."""
        return sys.gettrace() is self._held

    def _called(self, frame: FrameType, event: str, _: Any) -> Callable[..., Any] | None:
        code = code_of(frame)
        file = self._files.get(code.co_filename)
        if file is None:
            found = os.path.realpath(code.co_filename)
            file = self._files[code.co_filename] = found if found in self._own else ""
        if not file or getattr(code, "co_qualname", code.co_name).startswith(_OF_KERNELS):
            return None
        if code.co_name == "<module>" and frame.f_back is not None and frame.f_back.f_code.co_filename == _MAKES_KERNELS:
            return None
        if code.co_name == LAMBDA:
            self.ran.add((file, code.co_firstlineno, LAMBDA))
            return None
        return self._line

    def _line(self, frame: FrameType, event: str, _: Any) -> Callable[..., Any]:
        if event == "line":
            self.ran.add((self._files[code_of(frame).co_filename], frame.f_lineno, ""))
        return self._line
