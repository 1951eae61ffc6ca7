"""Names the outcome of a worker that has ended: crashed, out of memory, ended by itself, or forbidden."""

from __future__ import annotations

import re
import signal

from pypto_op.vocabulary import Outcome

_MEANING = {
    "SIGSEGV": "segmentation fault",
    "SIGBUS": "bus error",
    "SIGABRT": "abort",
    "SIGFPE": "arithmetic fault",
    "SIGILL": "illegal instruction",
}
_NO_MEMORY = re.compile(r"std::bad_alloc|can't allocate memory|Cannot allocate memory|MemoryError")
_FRAME_NAME = "kernel at "
_KERNEL_FRAME = re.compile(
    rf'(?P<begin>^\s*File )"[^"\n]*", line \d+(?P<comma>,?) in {_FRAME_NAME}(?P<file>[^\n]+):(?P<line>\d+)$', re.MULTILINE
)
_WORKER_WORDS = re.compile(r"^pypto-op: (.+)$", re.MULTILINE)
TRIPPED = 87
"""The exit code of a worker in which the candidate's code ran while the judge's own did (`worker.tripwire`)."""


def classify(
    how: dict[str, int], stderr: str, *, when: str, file_name: str, killed_for_memory: bool, at_limit: bool = False
) -> tuple[Outcome, str]:
    """Return the outcome and one line for a worker that ended before it answered.

    Args:
        how: {"exit": code}, {"signal": number}, or empty when the warden was killed too.
        stderr: what the worker wrote to its standard error.
        when: "at import" or "in the wrapper".
        file_name: the candidate's file, whose line is named when the crash report holds it.
        killed_for_memory: the kernel has killed something for lack of memory meanwhile.
        at_limit: the worker held nearly what it may: pypto ends its process with code 1 where it gets no more.
    """
    where = crash_line(stderr, file_name)
    own_words = _WORKER_WORDS.findall(stderr)
    if own_words and how.get("exit") == TRIPPED:
        return Outcome.FORBIDDEN, f"{file_name}: {own_words[-1][:300]}"
    if own_words:
        return Outcome.CRASHED, f"{file_name}: {own_words[-1][:300]} {when}"
    if at_limit and how.keys() & {"exit", "signal"}:
        return Outcome.OUT_OF_MEMORY, f"{where}: memory ran out {when}"
    if "exit" in how:
        return Outcome.EXITED, f"{file_name} ended its own process with exit code {how['exit']} {when}"
    if "signal" not in how:
        return Outcome.CRASHED, f"{file_name}: the candidate's processes were killed {when}"
    try:
        name = signal.Signals(how["signal"]).name
    except ValueError:
        name = f"signal {how['signal']}"
    if (name == "SIGKILL" and killed_for_memory) or (name == "SIGABRT" and _NO_MEMORY.search(stderr)):
        return Outcome.OUT_OF_MEMORY, f"{where}: memory ran out {when}"
    meaning = f" ({_MEANING[name]})" if name in _MEANING else ""
    return Outcome.CRASHED, f"{where}: killed by {name}{meaning} {when}"


def frame_name(file: str, line: int) -> str:
    """Return the name of a frame that stands for a line of a kernel (`worker.kernel_lines`)."""
    return f"{_FRAME_NAME}{file}:{line}"


def with_kernel_frames(text: str) -> str:
    """Return tracebacks and crash reports with such frames as frames of the kernel's file."""
    return _KERNEL_FRAME.sub(r'\g<begin>"\g<file>", line \g<line>\g<comma> in kernel', text) if _FRAME_NAME in text else text


def crash_line(stderr: str, file_name: str) -> str:
    """Return `file:line` of the innermost frame of `file_name` in a crash report of faulthandler."""
    stderr = with_kernel_frames(stderr)
    found = re.search(rf'File "[^"]*{re.escape(file_name)}", line (\d+)', stderr)
    return f"{file_name}:{found[1]}" if found else file_name
