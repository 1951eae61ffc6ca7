"""A `TorchDispatchMode` that does not load torch's compiler, and what its subclasses know of operators."""

from __future__ import annotations

import sys
from types import FrameType

from torch.utils._python_dispatch import TorchDispatchMode

COPIES = frozenset(("clone", "_to_copy"))
"""Operators that give the same values memory of their own."""


class DispatchMode(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Sees every operator that is dispatched in its thread; subclasses define `__torch_dispatch__`.

    torch would wrap that method, so that its first call imports `torch._dynamo`. That takes a second of processor time in
    each process that runs a golden, and it replaces functions of torch. Nothing is compiled here, so no wrapper is needed.
    """

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False


def place_in(path: str) -> tuple[int, int]:
    """Return the line of the file at `path` that is executed, and the instruction: `(2 * i + s) / (a + b + s)` adds twice."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename != path:
        frame = frame.f_back
    return (0, 0) if frame is None else (frame.f_lineno, frame.f_lasti)
