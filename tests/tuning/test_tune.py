"""`pypto-op tune` as a user calls it, on the smallest kernel that has something to choose."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.calling import Answer, command
from tests.judge.judging import place, sim_problem, verify
from tests.passes import pass_for_bytes

from pypto_op.proof.key import KEY_ENV
from pypto_op.workspace import OpWorkspace

pytestmark = pytest.mark.sim

CASES = [
    {"id": "even", "level": "L2", "shape": {"N": 64, "D": 32}, "atol": 1e-6, "rtol": 1e-5},
    {"id": "ragged", "level": "L3", "shape": {"N": 69, "D": 32}, "atol": 1e-6, "rtol": 1e-5},
]


def tune(ws: OpWorkspace, *words: str) -> Answer:
    return command("tune", ws.root, "--mode", "sim", *words)


@pytest.fixture(autouse=True)
def account(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_ENV, str(tmp_path_factory.mktemp("account") / "seal.key"))


@pytest.fixture
def ws(tmp_path: Path) -> OpWorkspace:
    if problem := sim_problem():
        pytest.skip(problem)
    ws = place("sum_diff", tmp_path, cases=CASES)
    spec = ws.spec.read_text(encoding="utf-8")
    ws.spec.write_text(spec.replace("{N: 16, D: 32}", "{N: 161, D: 32}").replace("  - {N: 21, D: 32}\n", ""))
    slow = ws.impl.read_text(encoding="utf-8").replace("shapes(16, 32)", "shapes(2, 32)")
    ws.impl.write_text(slow, encoding="utf-8")
    return ws


def test_without_a_pass_nothing_is_tuned(ws: OpWorkspace) -> None:
    before = ws.impl.read_bytes()
    answer = tune(ws)
    assert answer.code == 2 and "no sealed PASS" in answer.stderr and "pypto-op verify" in answer.stderr
    assert ws.impl.read_bytes() == before and not ws.tuning_report.exists()


@pytest.mark.parametrize("words", [("--budget", "0"), ("--trials", "0")])
def test_no_budget(ws: OpWorkspace, words: tuple[str, str]) -> None:
    answer = tune(ws, *words)
    assert answer.code == 2 and "finds nothing" in answer.stderr


@pytest.mark.slow
def test_a_faster_kernel_takes_the_place_of_the_first(ws: OpWorkspace) -> None:
    assert verify(ws.root).code == 0
    first = ws.impl.read_text(encoding="utf-8")
    impossible = tune(ws, "--target-us", "0.0000001")
    assert impossible.code == 2 and "no kernel reaches" in impossible.stderr
    early = tune(ws, "--resume", "--trials", "2")
    assert early.code == 2 and "no earlier search" in early.stderr
    missed = tune(ws, "--trials", "2", "--mutants", "0", "--target-us", "0.1", "--dry-run", "--json")
    assert missed.code == 1 and missed.report["target_met"] is False
    assert ws.impl.read_text(encoding="utf-8") == first, "a dry run leaves the kernel alone"

    answer = tune(ws, "--resume", "--trials", "12", "--mutants", "2", "--json")
    assert answer.code == 0, answer.stderr
    told = answer.report
    assert told["resumed"] == 2 and told["tried"] == 10, "what the first sitting tried is not run again"
    assert told["written"] and told["ratio"] < 0.99
    assert told["mutants"]["compared"] == 2
    assert ws.impl.read_text(encoding="utf-8") != first
    assert pass_for_bytes(ws) is not None, "the judge has passed exactly these bytes"
    assert {"accepted"} <= {row["fate"] for row in told["candidates"]}
    assert all(row["diff"] for row in told["candidates"][1:])
    report = ws.tuning_report.read_text(encoding="utf-8")
    assert "no device time" in report and "```diff" in report and report.count("\n| ") >= 12
    assert json.loads((ws.debug_dir / "tuning" / "result.json").read_text())["ratio"] == told["ratio"]
