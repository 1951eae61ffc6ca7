"""How the two processes begin: a device's driver is loaded in a thread, beside the modules that need it.

Nothing here imports torch at once, so a process that is started alone has both at work from its first moment.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
from typing import Any


def candidate(document: dict[str, Any]) -> Any:
    """Return the role of the process that runs the implementation."""
    load_driver(document["device"]["target"])
    from pypto_op.triton.run.processes.candidate import Candidate

    return Candidate(document)


def task(document: dict[str, Any]) -> Any:
    """Return the role of the process that holds the task."""
    load_driver(document["device"]["target"])
    from pypto_op.triton.run.processes.task import Task

    return Task(document)


def load_driver(target: str) -> None:
    """Begin to load an NVIDIA driver and to make the context that torch will find; harmless where there is none."""
    if target == "cuda":
        os.environ.setdefault("CUDA_MODULE_LOADING", "LAZY")  # as torch sets it, which is too late then
        threading.Thread(target=_make_context, name="driver", daemon=True).start()


def _make_context() -> None:
    with contextlib.suppress(OSError, AttributeError):
        driver = ctypes.CDLL("libcuda.so.1")
        device, context = ctypes.c_int(), ctypes.c_void_p()
        if driver.cuInit(0) == 0 and driver.cuDeviceGet(ctypes.byref(device), 0) == 0:
            driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
