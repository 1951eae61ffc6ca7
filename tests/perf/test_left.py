"""What runs left: task times in a folder, and a compilation's log of passes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.calling import command
from tests.judge.judging import place, sim_problem
from tests.perf.test_analysis import folder as launch_by_hand

from pypto_op.errors import ContractError
from pypto_op.perf.passes import differences, read_passes

LOG = (
    "[INFO ] PYPTO(7):2026-11-23 19:55:21.989 [pass_manager.cpp:259][PASS]:[PassManager.Function]:"
    "The Runtime of pass {} for program  function {} is {} us.\n"
)


def log(path: Path, *rows: tuple[str, str, int]) -> Path:
    path.write_text("something else\n" + "".join(LOG.format(*row) for row in rows), encoding="utf-8")
    return path


def test_passes_of_a_log(tmp_path: Path) -> None:
    rows = read_passes(log(tmp_path / "one.log", ("Split", "f", 10), ("Merge", "f", 25), ("Split", "g", 30)))
    assert [(row.name, row.runs, row.total_us, row.longest_us, row.longest) for row in rows] == [
        ("Split", 2, 40, 30, "g"),
        ("Merge", 1, 25, 25, "f"),
    ]
    other = read_passes(log(tmp_path / "two.log", ("Merge", "f", 5), ("Fuse", "f", 1)))
    assert [(one.name, one.before_us, one.after_us) for one in differences(rows, other)] == [
        ("Split", 40, 0),
        ("Merge", 25, 5),
        ("Fuse", 0, 1),
    ]


@pytest.mark.parametrize("made", ["", "a line of something else\n", None])
def test_a_log_that_tells_of_no_pass(tmp_path: Path, made: str | None) -> None:
    if made is not None:
        (tmp_path / "x.log").write_text(made, encoding="utf-8")
    with pytest.raises(ContractError, match="ASCEND_GLOBAL_LOG_LEVEL"):
        read_passes(tmp_path)


@pytest.mark.sim
def test_passes_of_a_real_compilation(tmp_path: Path) -> None:
    """A script in `sim`, with pypto's log at INFO where the caller's environment puts it."""
    if problem := sim_problem():
        pytest.skip(problem)
    ws = place("sum_diff", tmp_path)
    call = "import torch\nfrom sum_diff_impl import sum_diff_wrapper\nx = torch.ones(16, 32)\nsum_diff_wrapper(x, x)\n"
    file = ws.root / "call.py"
    file.write_text(call, encoding="utf-8")
    logs = tmp_path / "logs"
    environment = {**os.environ, "ASCEND_GLOBAL_LOG_LEVEL": "1", "ASCEND_PROCESS_LOG_PATH": str(logs)}
    words = [sys.executable, "-m", "pypto_op.cli", "script", str(file)]
    done = subprocess.run(words, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    answer = command("perf", ws.root, "--passes", logs, "--against", logs, "--json")
    assert answer.code == 0, answer.stderr
    rows = answer.report["passes"]
    assert len(rows) > 10 and all(row["runs"] >= 1 and row["total_us"] >= row["longest_us"] for row in rows)
    assert {row["after_us"] - row["before_us"] for row in answer.report["differences"]} == {0}
    told = command("perf", ws.root, "--passes", logs).stdout
    assert f"{len(rows)} passes" in told and rows[0]["name"] in told


def test_what_a_run_left(tmp_path: Path) -> None:
    ws = place("sum_diff", tmp_path / "op")
    left = tmp_path / "left"
    launch_by_hand(left / "000" / "000")
    told = command("perf", ws.root, "--left", left)
    assert told.code == 0, told.stderr
    assert "000/000: 10.00 us" in told.stdout and "vector chain of 2 tasks" in told.stdout
    one = command("perf", ws.root, "--left", left, "--leaf", "77").stdout
    assert "leaf 77: cube work of loop ROWS, line 9" in one and "leaf 88" not in one
    whole = command("perf", ws.root, "--left", left, "--json").report
    assert whole["launches"]["000/000"]["critical_path"] == {"tasks": 3, "busy": pytest.approx(0.8)}


@pytest.mark.parametrize("words", [("--left", "nothing"), ("--left", ".", "--leaf", "5"), ("--passes", "nothing")])
def test_nothing_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]) -> None:
    ws = place("sum_diff", tmp_path / "op")
    launch_by_hand(tmp_path / "000")
    monkeypatch.chdir(tmp_path)
    answer = command("perf", ws.root, *words)
    assert answer.code == 2 and len([line for line in answer.stderr.splitlines() if " s so far" not in line]) == 1
