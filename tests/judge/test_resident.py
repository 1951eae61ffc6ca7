"""The resident judge: commands say and do what they do without it, and it leaves nothing behind."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from tests import quickly
from tests.judge.judging import CASES, place
from tests.program import python

from pypto_op import resident
from pypto_op.backends import processes
from pypto_op.workspace import OpWorkspace

quickly.skip_without("torch")
pytestmark = pytest.mark.sim


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OpWorkspace]:
    """An operator whose commands ask a resident judge, and start it."""
    monkeypatch.setenv(resident.ENV, "1")
    monkeypatch.setenv("PYPTO_OP_KEY_FILE", str(tmp_path / "keys" / "seal.key"))
    monkeypatch.chdir(tmp_path)
    ws = place("sum_diff", tmp_path, cases=CASES)
    yield ws
    resident.end(tmp_path)
    assert until(lambda: not judges(tmp_path)), "the test leaves no judge"


def until(found: Callable[[], object]) -> bool:
    """Wait for something, as long as a busy machine may take."""
    deadline = time.monotonic() + 300
    while not found() and time.monotonic() < deadline:
        time.sleep(0.1)
    return bool(found())


def judges(workspace: Path) -> list[psutil.Process]:
    """Return the resident judges of a workspace, without their forks."""
    found = []
    for process in psutil.process_iter():
        try:
            line = process.cmdline()
            if "pypto_op.judge.resident" in line and str(workspace) in line and process.ppid() not in [p.pid for p in found]:
                found.append(process)
        except psutil.Error:
            continue
    return found


def verify(ws: OpWorkspace, *words: str) -> subprocess.CompletedProcess[str]:
    return python("-m", "pypto_op.cli", "verify", ws.root, "--modes", "sim", "--jobs", "1", "--seed", "7", *words)


@pytest.mark.slow
def test_commands_end_as_without_it(asked: OpWorkspace, monkeypatch: pytest.MonkeyPatch) -> None:
    first = verify(asked, "--json")
    report = json.loads(first.stdout)
    assert (first.returncode, report["status"]) == (0, "PARTIAL"), first.stderr
    (judge,) = judges(Path.cwd())
    misuse = verify(asked, "--case", "none")
    source = asked.impl.read_text()
    asked.impl.write_text(source.replace("import pypto", "import nothing_here", 1))
    wrong = verify(asked, "--quiet")
    assert [p.pid for p in judges(Path.cwd())] == [judge.pid], "all were asked of one process"
    monkeypatch.setenv(resident.ENV, "0")
    assert (misuse.returncode, misuse.stderr) == (2, verify(asked, "--case", "none").stderr)
    alone = verify(asked, "--quiet")
    assert wrong.returncode == alone.returncode == 1
    assert wrong.stdout.split(",")[0] == alone.stdout.split(",")[0]


def test_it_ends_when_idle(asked: OpWorkspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(resident.IDLE_ENV, "0.5")
    assert verify(asked, "--case", "none").returncode == 2
    assert until(lambda: not judges(Path.cwd()))
    assert verify(asked, "--case", "none").returncode == 2, "and the next command starts another"


def test_it_ends_with_its_owner(asked: OpWorkspace, monkeypatch: pytest.MonkeyPatch) -> None:
    owner = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    monkeypatch.setenv(resident.OWNER_ENV, str(owner.pid))
    assert verify(asked, "--case", "none").returncode == 2
    (judge,) = judges(Path.cwd())
    below = processes.tree_below(judge.pid)
    assert below, "the process that workers are forked from"
    owner.communicate(b"\n")
    assert until(lambda: not judges(Path.cwd()) and all(processes.is_gone(pid) for pid in below))


def test_it_ends_with_its_owner_while_it_loads(
    asked: OpWorkspace, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """On a busy machine that takes a minute; this torch takes ten."""
    slow = tmp_path_factory.mktemp("slow")
    (slow / "torch.py").write_text("import time\nfor _ in range(6000):\n    time.sleep(0.1)\n")
    monkeypatch.setenv("PYTHONPATH", str(slow))
    owner = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    monkeypatch.setenv(resident.OWNER_ENV, str(owner.pid))
    resident.prepare(Path.cwd())
    (judge,) = judges(Path.cwd())
    owner.kill()
    owner.wait()
    assert until(lambda: processes.is_gone(judge.pid))
    assert not list(resident.folder_of(Path.cwd()).glob(resident.SOCKET))


def test_a_command_dies_with_its_caller(asked: OpWorkspace) -> None:
    words = ["-m", "pypto_op.cli", "verify", str(asked.root), "--modes", "sim"]
    caller = subprocess.Popen([sys.executable, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert until(lambda: judges(Path.cwd()))
    (judge,) = judges(Path.cwd())

    def forks() -> list[psutil.Process]:
        found = []
        for process in judge.children():
            with contextlib.suppress(psutil.Error):  # one that has ended meanwhile, or waits to be collected
                found += [process] if "pypto_op.judge.resident" in process.cmdline() else []
        return found

    assert until(forks)
    caller.send_signal(signal.SIGKILL)
    caller.wait()
    assert until(lambda: not forks()) and judge.is_running()


def test_without_the_word_nobody_is_started(asked: OpWorkspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(resident.ENV)
    assert verify(asked, "--case", "none").returncode == 2 and not judges(Path.cwd())
    monkeypatch.setenv(resident.ENV, "0")
    assert verify(asked, "--case", "none").returncode == 2 and not judges(Path.cwd())


def test_a_script_is_never_run_in_it(asked: OpWorkspace, tmp_path: Path) -> None:
    """It is anybody's code."""
    assert verify(asked, "--case", "none").returncode == 2
    (judge,) = judges(Path.cwd())
    file = tmp_path / "script.py"
    file.write_text("import os, sys\nprint(os.getppid(), 'pypto_op.judge.resident' in sys.modules)\n")
    done = python("-m", "pypto_op.cli", "script", file)
    assert done.stdout.split() == [str(os.getpid()), "False"] and judge.is_running(), done.stderr


def test_a_judge_that_cannot_start_is_no_hindrance(asked: OpWorkspace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The command runs by itself."""
    (tmp_path / "cache").write_text("no folder")
    monkeypatch.setenv("PYPTO_OP_CACHE", str(tmp_path / "cache"))
    done = verify(asked, "--case", "none")
    assert done.returncode == 2 and "no case matches" in done.stderr, done.stderr


def test_the_environment_decides_which_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    here = resident.folder_of(Path("/w"))
    monkeypatch.setenv("PYPTO_OP_TOKEN", "t")
    monkeypatch.setenv("SHLVL", "9")
    assert resident.folder_of(Path("/w")) == here
    monkeypatch.setenv("OMP_NUM_THREADS", str(os.cpu_count()) + "1")
    assert resident.folder_of(Path("/w")) != here
