"""Ends a worker in which code of a candidate runs while the judge's own does: between two calls, outside of the guard's watch.

Such code sees open frames, and modules that are hidden from it elsewhere: a callback of the collector of garbage, or what is
called when a tensor ends. No kernel needs it. The process ends, since whatever was recorded in it may be replaced by then.
"""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path
from types import FrameType
from typing import Any

from pypto_op.backends.endings import TRIPPED
from pypto_op.backends.worker.trusted import is_trusted


class Tripwire:
    """Set while the judge's code runs, lifted while the candidate's does; the files of modules loaded so far may run."""

    def __init__(self) -> None:
        files = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
        self._known = frozenset(file for file in files if file)
        self._seen = self._look

    def set(self) -> None:
        """From now on nobody else's code may run; nothing is collected either."""
        gc.disable()
        sys.setprofile(self._seen)

    def lift(self) -> None:
        """The candidate's code may run, under the guard."""
        sys.setprofile(None)
        gc.enable()

    def _look(self, frame: FrameType, event: str, argument: Any) -> None:
        if event != "call":
            return
        file = frame.f_code.co_filename
        # Text that became code is `<string>`, as a data class's methods are; a candidate can make none.
        if file.startswith("<") or file in self._known or is_trusted(file):
            return
        place = f"{Path(file).name}:{frame.f_lineno}"
        os.write(2, f"pypto-op: {place} runs between two calls of the wrapper, while the judge looks\n".encode())
        os._exit(TRIPPED)
