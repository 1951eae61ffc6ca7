"""What a Triton candidate may touch: the audit hook of the PyPTO judge, with Triton's own compiler let through."""

from __future__ import annotations

import _thread
import functools
import sys
import threading
from dataclasses import dataclass
from types import FrameType
from typing import Any

from pypto_op.backends.worker.askers import BUSY, plain
from pypto_op.backends.worker.guard import Fence, Guard
from pypto_op.backends.worker.trusted import is_trusted
from pypto_op.triton.run.watching import texts

_COMPILER_EVENTS = frozenset(
    {"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "ctypes.dlopen", "os.listdir", "os.scandir",
     "socket.connect", "socket.bind", "socket.getaddrinfo"}
)  # fmt: skip
_LOOKS = frozenset({"object.__getattr__", "sys._getframe"})
_PRINTS = frozenset({"print_exc", "format_exc", "print_exception", "format_exception"})
_COMPILER = ("/triton/", "/triton_ascend/", "/torch_npu/", "/torch/cuda/", "/torch/_inductor/")


@dataclass(frozen=True)
class TritonFence(Fence):
    """As for a PyPTO candidate, but the task's file stands for the golden."""

    task_module: str = ""  # the name under which the task could be imported

    def may_read(self, path: str) -> bool:
        """Whether `path`, absolute and resolved, may be read."""
        if path in self.own or path == self.scratch or path.startswith(self.scratch + "/"):
            return True
        return not any(path == hidden or path.startswith(hidden + "/") for hidden in self.hidden)

    def may_import(self, name: str) -> bool:
        """Whether a module may be imported."""
        top = name.partition(".")[0]
        return top != "pypto_op" and name != self.task_module


class TritonGuard(Guard):
    """Lets Triton compile, and refuses threads that the candidate starts."""

    def install(self) -> None:
        """Add the hook, and stand in front of what starts threads: not every Python tells a hook about those."""
        super().install()
        original = _thread.start_new_thread

        @functools.wraps(original)
        def start(*args: Any, **kwargs: Any) -> int:
            if self._armed and not _through_compiler():
                self._offences.append("start a thread")
                raise PermissionError("forbidden to a candidate: start a thread")
            return original(*args, **kwargs)

        for module, name in ((_thread, "start_new_thread"), (_thread, "start_new"), (threading, "_start_new_thread")):
            setattr(module, name, start)

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self._armed or BUSY.on:  # first, since what watches a candidate causes thousands of events itself
            return
        if event == "compile":
            with BUSY:
                made = texts.runs_code(plain(arguments))
            if made:
                self._offences.append(made)
                raise PermissionError(f"forbidden to a candidate: {made}")
        compiles = event in _COMPILER_EVENTS or (event == "import" and arguments[1] is not None)
        if compiles and _through_compiler():
            return
        super()._hook(event, arguments)

    _hook.__cantrace__ = False  # type: ignore[attr-defined]

    def _excuses(self, event: str) -> bool:
        return event in _LOOKS and _prints_an_error()


def _prints_an_error() -> bool:
    """Whether the file has an error printed: what comes of that is text."""
    last: FrameType | None = None
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and is_trusted(frame.f_code.co_filename):
        last, frame = frame, frame.f_back
    code = None if last is None else last.f_code
    return code is not None and code.co_filename.endswith("/traceback.py") and code.co_name in _PRINTS


def _through_compiler() -> bool:
    """Whether Triton, or torch's device layer, is among the callers."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        file = frame.f_code.co_filename
        if "/site-packages/" in file and any(part in file for part in _COMPILER):
            return True
        frame = frame.f_back
    return False
