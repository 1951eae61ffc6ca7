"""Which line of the user's files asks for what the process just does."""

from __future__ import annotations

import os
import sys
from types import FrameType

from pypto_op.backends.hostshim import draws
from pypto_op.backends.worker.trusted import is_trusted

_ASKS_WHOSE_MEMORY_IT_IS = draws.__file__
"""The host shim asks that for `x.cuda()`, and reads no number."""


def own_line(own: frozenset[str]) -> str | None:
    """Return "file:line" of the innermost line of these files that is being executed.

    Returns:
        None where Triton or the host shim does it on its own behalf, or where no such line is.
    """
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        file = frame.f_code.co_filename
        if file in own or file.startswith("<string") or not is_trusted(file) and os.path.realpath(file) in own:
            return f"{file.rpartition('/')[2]}:{frame.f_lineno}"
        if "/site-packages/triton" in file or file == _ASKS_WHOSE_MEMORY_IT_IS:
            return None
        frame = frame.f_back
    return None
