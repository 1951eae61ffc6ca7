"""Whatever lies at a path that somebody names, each command ends soon, in words, and leaves all as it was.

The commands and their paths are found in the tree of click, so a command that is new is asked, too.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import shutil
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import click
import pytest
from tests.calling import Answer, command

from pypto_op.bundle import command_page
from pypto_op.cli import root
from pypto_op.options import OperatorDir

OPERATOR = Path(__file__).parents[2] / "examples" / "ops" / "rmsnorm"
SECONDS = 20
"""Longer takes no refusal."""


def _is_path(param: click.Parameter) -> bool:
    metavar = getattr(param, "metavar", None) or ""
    return isinstance(param.type, (click.Path, OperatorDir)) or "PATH" in metavar or "FILE" in metavar


LEAVES = dict(command_page.leaves(root))
PLACES = [(words, param) for words, leaf in LEAVES.items() for param in leaf.params if _is_path(param)]
STARTS = {"demo --out": ("missing", "folder"), "install --target": ("folder",), "doctor --target": ("folder",),
          "new --into": ("folder",), "triton verify --output": ("missing", "empty", "binary", "wrong UTF-8"),
          "triton verify --verify_dir": ("folder",)}  # fmt: skip
"""Where a command rightly begins its work, which others test."""
BESIDE = {
    "perf --against": ["--passes", "good.log"],
    "report --out": ["rmsnorm"],
    "diagnose --kernel": ["--log", "good.log"],
    "verify --report": ["--case", "nosuch"],
}
"""What a path is asked beside."""
GOOD = {"op_dir": "rmsnorm", "op_dirs": "rmsnorm", "run_dir": "rmsnorm", "golden": "rmsnorm/rmsnorm_golden.py"}


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(f"{path.name}")


def _unreadable(path: Path) -> None:
    path.write_text("x = 1\n", encoding="utf-8")
    path.chmod(0)


KINDS: dict[str, Callable[[Path], Any]] = {
    "missing": lambda path: None,
    "folder": Path.mkdir,
    "pipe": os.mkfifo,
    "socket": _socket,
    "binary": lambda path: path.write_bytes(b"\x7fELF\0\1\2" + bytes(range(256))),
    "empty": Path.touch,
    "wrong UTF-8": lambda path: path.write_bytes(b"x = 1  # na\xefve\n"),
    "endless": lambda path: path.symlink_to("/dev/zero"),
    "loop": lambda path: path.symlink_to(path.name),
    "unreadable": _unreadable,
    "long": lambda path: None,
}
NEVER_READ = ("pipe", "socket", "endless", "loop", "long", "unreadable")
"""What nobody can read: to end well would be to have ignored it."""


class _Hangs(BaseException):
    """The command has not ended."""


class _Runs(BaseException):
    """The command has handed over to another program."""


@contextmanager
def _soon() -> Iterator[None]:
    def late(_signal: int, _frame: FrameType | None) -> None:
        raise _Hangs

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def _as_a_user() -> Iterator[None]:
    """Take the rights to read what may not be read from a test that root runs; they are back at the end."""
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    own = (ctypes.c_uint32 * 6)()
    libc = ctypes.CDLL(None)
    libc.capget(header, own)
    lesser = type(own)(*own)
    lesser[0] &= ~0b110  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, of those in effect
    libc.capset(header, lesser)
    try:
        yield
    finally:
        libc.capset(header, own)


def _line(words: str, param: click.Parameter, path: Path) -> list[str]:
    """Return the command with every argument that it needs, and `path` where `param` stands."""
    line = words.split()
    for other in LEAVES[words].params:
        flag = [] if isinstance(other, click.Argument) else [other.opts[0]]
        if other is param:
            line += [*flag, str(path)]
        elif other.required:
            choices = other.type.choices if isinstance(other.type, click.Choice) else ["good.log" if _is_path(other) else "x"]
            line += [*flag, GOOD.get(str(other.name), str(choices[0]))]
    return [*line, *BESIDE.get(f"{words} {param.opts[0]}", [])]


def _listing(folder: Path) -> list[tuple[str, int, int]]:
    """Return what must stay: all but reports, which `verify` writes of a kernel that is none, too."""
    files = [path for path in folder.rglob("*") if path.suffix != ".json" and "_debug" not in path.parts]
    return sorted((str(path), path.lstat().st_ino, path.lstat().st_size) for path in files if not path.is_dir())


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    importlib.import_module("pypto_op.triton.intake.importing")  # torch: an alarm amid its import would leave half of it behind
    folder = tmp_path_factory.mktemp("work")
    shutil.copytree(OPERATOR, folder / "rmsnorm", ignore=shutil.ignore_patterns("_debug"))
    (folder / "rmsnorm/_debug").mkdir()
    (folder / "rmsnorm/_debug/.MEMORY.md.lock").touch()
    (folder / "good.log").write_text("[RunPass] nothing\n", encoding="utf-8")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(("words", "param"), PLACES, ids=[f"{words} {param.opts[0]}" for words, param in PLACES])
def test_it_is_refused_in_words(words: str, param: click.Parameter, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def runs(*_words: Any) -> None:
        raise _Runs

    monkeypatch.chdir(workspace)
    monkeypatch.setattr(os, "execv", runs)
    monkeypatch.setattr("pypto_op.runner.surroundings.enter", dict)
    faults = []
    for kind, make in KINDS.items():
        path = workspace / (f"{'x' * 300}.py" if kind == "long" else "given.py")
        if kind in STARTS.get(f"{words} {param.opts[0]}", ()):
            continue
        make(path)
        before = _listing(workspace)
        with _as_a_user(), _soon():
            fault = _fault_of(_line(words, param, path), kind)
        if not fault and _listing(workspace) != before:
            fault = "something was changed"
        if fault:
            faults.append(f"{kind}: {fault}")
        if kind == "folder":
            shutil.rmtree(path)
        elif kind not in ("long", "missing"):
            path.unlink()
    assert not faults, "\n".join(faults)


def _fault_of(line: list[str], kind: str) -> str:
    """Return what is wrong with the end of a command, "" for nothing."""
    try:
        answer: Answer = command(*line)
    except _Hangs:
        return "has not ended"
    except _Runs:
        return "" if kind not in (*NEVER_READ, "binary", "wrong UTF-8") else "runs it"
    except Exception as error:
        return f"raises {error!r:.200}"
    said = answer.stdout + answer.stderr
    if "Traceback" in said or "internal error" in said:
        return f"is no answer: {said[-300:]}"
    if answer.code == 0:
        return "is passed over" if kind in NEVER_READ else ""
    if answer.code not in (1, 2, 3) or not said.strip():
        return f"ends with {answer.code} and says {said[-300:]!r}"
    refusal = [line for line in answer.stderr.splitlines() if " s so far" not in line]
    if answer.code != 1 and kind in (*NEVER_READ, "missing") and (len(refusal) != 1 or "; " not in refusal[0]):
        return f"says no remedy, or more than a line: {refusal}"
    return ""
