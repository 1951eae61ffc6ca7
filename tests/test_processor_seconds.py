"""Every run tells what its tests have cost, with and without processes beside one another."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.processor_seconds import SHOWN, Account, report_lines, spent

from pypto_op.backends import launcher

ROOT = Path(__file__).resolve().parents[1]
BURN = "import time\nwhile time.process_time() < 0.5: pass"
TESTS = f"""
import subprocess, sys, time

BURN = {BURN!r}

def test_cheap():
    time.sleep(0.5)

def test_dear_child():
    subprocess.run([sys.executable, "-c", BURN], check=True)
"""


def test_the_slowest_come_first_and_rooms_are_summed() -> None:
    costs = {f"tests/judge/test_a.py::test_{n}": float(n) for n in range(30)} | {"tests/lint/test_b.py::test_x": 60.0}
    lines = report_lines(costs, 120.0).splitlines()
    assert lines[0].split() == ["60.00", "tests/lint/test_b.py::test_x"] and lines[1].split()[0] == "29.00"
    assert len([line for line in lines if "::" in line]) == SHOWN
    assert "by room: judge 435.0, lint 60.0" in lines
    assert lines[-1] == "start, collection and end: 120.0; altogether 10.2 processor minutes"


@pytest.mark.slow
@pytest.mark.parametrize("processes", ["0", pytest.param("2", marks=pytest.mark.slow)])
def test_a_childs_time_counts_and_sleep_does_not(processes: str, tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TESTS)
    (tmp_path / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text())
    command = [sys.executable, "-m", "pytest", "-q", "-n", processes, "-p", "no:cacheprovider", "."]
    env = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)}
    said = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=True).stdout
    cost = {name: float(seconds) for seconds, name in re.findall(r"([\d.]+)  \S+::(\w+)", said)}
    assert cost["test_dear_child"] >= 0.4 > cost["test_cheap"], said


@pytest.mark.slow
@pytest.mark.parametrize(("dist", "counted"), [("load", False), ("no", True)])
def test_a_process_that_only_distributes_does_not_count_its_workers_again(dist: str, counted: bool) -> None:
    """They are its children, and each has said what it cost."""
    account = Account(cast(Any, SimpleNamespace(getoption=lambda *_: dist)))
    account.pytest_sessionfinish()
    subprocess.run([sys.executable, "-c", BURN], check=True)
    account.pytest_sessionfinish()
    assert (account.outside[-1] >= 0.4) is counted, account.outside


def test_a_session_that_is_a_child_of_this_process_counts_once() -> None:
    """A device's session is one: the kernel hands its time up, and the launcher has it, too."""
    ours, far = socket.socketpair()
    pipes = [os.pipe() for _ in range(3)]
    before = spent()
    burn = f"{BURN.replace('0.5', '0.2')}\nprint(flush=True)\ntime.sleep(60)"
    process = subprocess.Popen([sys.executable, "-c", burn], stdout=subprocess.PIPE)
    assert process.stdout is not None and process.stdout.readline()
    with process.stdout, far:
        launcher.Launched(process.pid, False, ours, *(read for read, _ in pipes), process).end()
    for _, write in pipes:
        os.close(write)
    assert 0.15 <= spent() - before < 0.35


def test_no_module_of_tests_loads_a_large_package_at_collection() -> None:
    """Each test process collects every module; `quickly.skip_without` asks for a package without importing it."""
    loads = re.compile(r'^(?:\w+ = )?pytest\.importorskip\("(?:pypto|anthropic|ray)"', re.M)
    files = [path for path in Path(__file__).parent.rglob("test_*.py") if "fixtures" not in path.parts]
    assert [str(path) for path in files if loads.search(path.read_text(encoding="utf-8"))] == []


ONE = "def test_one(): pass\n"
TABLE = "import pytest\n@pytest.mark.parametrize('n', range(9))\ndef test_table(n): pass\n"


@pytest.mark.slow
@pytest.mark.parametrize(("asked", "rows"), [("quick", ["0", "4"]), ("", list("012345678"))])
def test_make_test_quick_takes_some_rows_of_each_test_and_make_test_all(asked: str, rows: list[str], tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TABLE + ONE)
    (tmp_path / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text())
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider", "."]
    env = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), "PYPTO_OP_TESTS": asked}
    said = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=True).stdout
    assert re.findall(r"::test_table\[(\d)\]", said) == rows, said
    assert "::test_one" in said
