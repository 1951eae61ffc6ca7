"""Makes a crash of this process tell its place on standard error: the C++ frames, then the Python frames.

pypto handles segmentation faults itself when it is imported, in the place of Python's fault handler, and prints nothing:
its handler writes to pypto's logger and crashes there. So this comes after the import.
"""

from __future__ import annotations

import ctypes
import faulthandler
import signal
from pathlib import Path

_STDERR = 2
_libraries: list[ctypes.CDLL] = []


def load(library: Path | None) -> None:
    """Load the teller of C++ frames (`native.NativeTools.crash_frames`); without it a crash tells its Python frames only."""
    if library is not None and not _libraries:
        _libraries.append(ctypes.CDLL(str(library)))


def tell() -> None:
    """Have this process tell its crashes, whoever handled them before, and where it is when SIGUSR1 asks."""
    faulthandler.disable()
    signal.signal(signal.SIGSEGV, signal.SIG_DFL)
    faulthandler.enable(_STDERR)
    faulthandler.register(signal.SIGUSR1, _STDERR, all_threads=False)
    for library in _libraries:
        library.pypto_op_tell_crashes()
