"""`pypto-op debug host-stacktrace-analyzer`: the frames of a crash on the host, with names and source lines.

Reads traces of glibc, gdb, AddressSanitizer, pypto and Python's fault handler. Names are demangled by `c++filt`, addresses
become lines by `addr2line`; both are of binutils, and what one of them cannot tell is left out and said.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pypto_op.backends.endings import with_kernel_frames
from pypto_op.diagnose.readable import lines_of
from pypto_op.documents import schema

_PYTHON = re.compile(r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d+)(?:,)? in (?P<name>\S+)')
_GLIBC = re.compile(r"(?P<library>/?[\w./+-]+)\((?P<name>[^\n]*?)\+?(?P<offset>0x[0-9a-f]+)?\)\s*\[(?P<address>0x[0-9a-f]+)\]")
_GDB = re.compile(
    r"^\s*#(?P<number>\d+)\s+(?:(?P<address>0x[0-9a-f]+) in )?(?P<name>[\w:~<>$@.,&* ]+?)\s*\((?P<arguments>.*?)\)"
    r"(?: at (?P<file>[^\s:]+):(?P<line>\d+)| from (?P<library>\S+))?\s*$"
)
_ASAN = re.compile(r"^\s*#(?P<number>\d+) (?P<address>0x[0-9a-f]+)(?: in (?P<name>.+?))?\s+\(?(?P<where>\S+?)\)?\s*$")
_PYPTO = re.compile(r"^\s*(?:\d+\s+)?(?P<name>npu::tile_fwk::[\w:~<>]+)")
_SIGNAL = re.compile(
    r"(Segmentation fault|SIGSEGV|SIGABRT|SIGBUS|SIGFPE|SIGILL|Aborted|Bus error|Floating point exception|signal \d+|"
    r"AddressSanitizer: [\w-]+|std::bad_alloc)"
)
_WORDS = (
    b'File "', b"[0x", b"#", b"npu::tile_fwk", b"Segmentation", b"SIG", b"Aborted",
    b"Bus error", b"Floating point", b"signal ", b"AddressSanitizer", b"bad_alloc",
)  # fmt: skip
"""What a line holds that one of these may match."""
_MOST = 200
_LONGEST_LINE = 4000
_SECONDS = 60
_STATIC = 0x1_0000_0000
"""Programs that are not moved lie below this address."""


def analyse(log: Path, *, kernel: Path | None = None, binary: Path | None = None) -> dict[str, Any]:
    """Return the frames of a crash (schemas/debug_host_stacktrace_analyzer.schema.json).

    Args:
        log: what the crash printed; read line by line.
        kernel: the kernel's file; None: any that is called `*_impl.py` or a copy below `_debug/`.
        binary: the program, for addresses that name none.

    Raises:
        ContractError: there is no such log.
    """
    signals, python, native = _read(log)
    missing = [*_silence(log, [*python, *native]), *_demangle(native), *_resolve(native, binary)]
    own = [frame for frame in python if _is_kernel(frame["file"], kernel)]
    result = {
        "schema_version": 1,
        "signal": signals[0] if signals else None,
        "python_frames": python,
        "native_frames": [{key: value for key, value in frame.items() if key != "mangled"} for frame in native],
        "kernel_frame": own[0] if own else None,
        "first_named": next((frame["function"] for frame in native if frame["function"] and not _is_glue(frame)), None),
        "missing": missing,
    }
    schema.check(result, "debug_host_stacktrace_analyzer")
    return result


def _silence(log: Path, frames: Sequence[Any]) -> list[str]:
    if frames:
        return []
    said = "shows no frame" if log.stat().st_size else "is empty"
    return [f"{log} {said}: name the file with all that the crash printed, or with what `bt` says in gdb"]


def _read(log: Path) -> tuple[list[str], list[dict[str, Any]], list[dict[str, Any]]]:
    signals: list[str] = []
    python: list[dict[str, Any]] = []
    native: list[dict[str, Any]] = []
    for line in lines_of(log, _LONGEST_LINE, _WORDS):
        if not signals and (told := _SIGNAL.search(line)):
            signals.append(told[1])
        if (found := _PYTHON.match(with_kernel_frames(line))) and len(python) < _MOST:
            python.append({"file": found["file"], "line": int(found["line"]), "function": found["name"]})
        elif len(native) < _MOST and (frame := _native(line)):
            native.append(frame)
    return signals, python, native


def _native(line: str) -> dict[str, Any] | None:
    if "[0x" in line and (found := _GLIBC.search(line)):
        return _frame(found["name"], found["library"], found["offset"] if not found["name"] else None, found["address"])
    if found := _GDB.match(line):
        frame = _frame(found["name"], found["library"], None, found["address"])
        return {**frame, "file": found["file"], "line": int(found["line"]) if found["line"] else None}
    if found := _ASAN.match(line):
        library, _, offset = found["where"].partition("+")
        if offset:
            return _frame(found["name"] or "", library.lstrip("("), offset, found["address"])
        file, _, number = found["where"].partition(":")
        frame = _frame(found["name"] or "", None, None, found["address"])
        return {**frame, "file": file, "line": int(number.partition(":")[0]) if number[:1].isdigit() else None}
    if found := _PYPTO.match(line):
        return _frame(found["name"], None, None, None)
    return None


def _frame(name: str, library: str | None, offset: str | None, address: str | None) -> dict[str, Any]:
    plain = name.strip()
    return {
        "function": plain or None,
        "mangled": plain.startswith("_Z"),
        "library": library,
        "offset": offset,
        "address": address,
        "file": None,
        "line": None,
    }


def _demangle(frames: list[dict[str, Any]]) -> list[str]:
    mangled = [frame for frame in frames if frame["mangled"]]
    if not mangled:
        return []
    told = _told(["c++filt"], "\n".join(frame["function"] for frame in mangled))
    if told is None:
        return ["c++filt is not installed (Debian: binutils): names stay mangled"]
    for frame, name in zip(mangled, told.splitlines(), strict=False):
        frame["function"] = name
    return []


def _resolve(frames: list[dict[str, Any]], binary: Path | None) -> list[str]:
    """Fill in file and line of the frames that name a place in a library; return what could not be told."""
    missing: list[str] = []
    for frame in frames:
        library = frame["library"] or (str(binary) if binary else None)
        address = frame["address"] or "0x0"
        # Of a library that was moved when it was loaded, only an offset tells the place.
        place = frame["offset"] or (address if frame["library"] is None or 0 < int(address, 16) < _STATIC else None)
        if frame["file"] is not None or library is None or place is None:
            continue
        if not Path(library).is_file():
            missing.append(f"{library} does not lie here: no line for {place}")
            continue
        if shutil.which("addr2line") is None:
            return [*missing, "addr2line is not installed (Debian: binutils): no source lines"]
        told = _told(["addr2line", "-f", "-C", "-e", library, place], "")
        name, _, where = (told or "").strip().partition("\n")
        file, _, number = where.rpartition(":")
        if file and file != "??" and number.split(" ")[0].isdigit():
            frame["file"], frame["line"] = file, int(number.split(" ")[0])
            frame["function"] = frame["function"] or name
        elif not any(library in one for one in missing):  # the name that is told then is a neighbour's
            missing.append(f"{library} has no debug information: no lines, and names only where it exports them")
    return missing


def _told(command: Iterable[str], text: str) -> str | None:
    try:
        done = subprocess.run([*command], input=text, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def _is_kernel(file: str, kernel: Path | None) -> bool:
    path = Path(file)
    return path.name == kernel.name if kernel is not None else path.name.endswith("_impl.py") or path.parent.name == "_debug"


def _is_glue(frame: dict[str, Any]) -> bool:
    """Whether a frame only carries the signal or the call: libc, the interpreter, pybind11."""
    name, library = str(frame["function"]), str(frame["library"] or "")
    return bool(re.search(r"libc\.so|libpthread|ld-linux|libpython", library)) or name.startswith(
        ("raise", "abort", "__", "_Py", "Py", "gsignal", "pybind11::", "std::", "killpg")
    )
