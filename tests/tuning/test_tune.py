"""`pypto-op tune` as a user calls it, on the smallest kernel that has something to choose."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from tests.calling import Answer, command
from tests.judge.judging import left_running, place, sim_problem, verify
from tests.passes import pass_for_bytes
from tests.telling import told_lines

from pypto_op.report.page import Story, render
from pypto_op.report.sources import swimlanes
from pypto_op.tuning import acceptance
from pypto_op.vocabulary import Mode
from pypto_op.workspace import OpWorkspace

pytestmark = [pytest.mark.sim, pytest.mark.usefixtures("private_key")]

CASES = [
    {"id": "even", "level": "L2", "shape": {"N": 64, "D": 32}, "atol": 1e-6, "rtol": 1e-5},
    {"id": "ragged", "level": "L3", "shape": {"N": 69, "D": 32}, "atol": 1e-6, "rtol": 1e-5},
]


def tune(ws: OpWorkspace, *words: str) -> Answer:
    return command("tune", ws.root, "--mode", "sim", *words)


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


def test_what_bounds_a_kernel(ws: OpWorkspace) -> None:
    answer = command("perf", ws.root, "--json")
    assert answer.code == 0, answer.stderr
    (shape,) = answer.report["shapes"]
    assert shape["work"]["bytes"] == 4 * 161 * 32 * 4, "two inputs and two outputs of float32"
    assert shape["work"]["vector_flop"] == 3 * 161 * 32, "a product with 2, a sum, a difference"
    assert 0 < shape["bound_us"] < shape["us"] and 0 < shape["share"] < 1
    (launch,) = shape["launches"]
    lines = ws.impl.read_text(encoding="utf-8").splitlines()
    named = {line for row in launch["leaves"] if row["leaf"] for line in row["leaf"]["lines"]}
    assert any("x_tile * 2.0 + y_tile" in lines[line - 1] for line in named), "a leaf leads to the kernel's line"
    assert shape["levers"][0]["why"]
    page = (ws.eval_dir / "perf.html").read_text(encoding="utf-8")
    assert page.count("<rect") == sum(usage["tasks"] for usage in launch["usage"]) and "no device time" in page
    kept = swimlanes(ws, {"hashes": {"impl": hashlib.sha256(ws.impl.read_bytes()).hexdigest()}})
    shown = render(Story("demo", swimlanes=kept))
    assert shown.count("<rect") == page.count("<rect") and "<script src" not in shown and "http" not in shown
    assert swimlanes(ws, {"hashes": {"impl": "of another kernel"}}) is None
    left = command("perf", ws.root, "--left", ws.debug_dir / "perf")
    assert left.code == 0 and f"{launch['us']:.2f} us in the cost model" in left.stdout and "no device time" in left.stdout
    leaf = launch["leaves"][0]["hash"]
    assert f"leaf {leaf}" in command("perf", ws.root, "--left", ws.debug_dir / "perf", "--leaf", leaf).stdout


def test_without_a_device_nothing_is_tuned_there(ws: OpWorkspace) -> None:
    from pypto_op.backends.npu import NpuBackend

    if NpuBackend().availability().ok:
        pytest.skip("there is an NPU")
    answer = command("tune", ws.root, "--mode", "npu")
    assert answer.code == 3 and "npu" in answer.stderr and len(told_lines(answer.stderr)) == 1


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
    ((other, (before, after)),) = told["others_us"].items()
    assert other == "N=64, D=32 float32" and before > 0 and after > 0, "the suite's ordinary shape that is no P0 shape"
    assert f"| {other}, no P0 shape |" in ws.tuning_report.read_text(encoding="utf-8")
    assert told["mutants"]["compared"] == 2
    assert ws.impl.read_text(encoding="utf-8") != first
    assert pass_for_bytes(ws) is not None, "the judge has passed exactly these bytes"
    assert {"accepted"} <= {row["fate"] for row in told["candidates"]}
    assert all(row["diff"] for row in told["candidates"][1:])
    report = ws.tuning_report.read_text(encoding="utf-8")
    assert "no device time" in report and "```diff" in report and report.count("\n| ") >= 12
    page = (ws.eval_dir / "tuning.html").read_text(encoding="utf-8")
    assert page.count("<circle") == 12 and "http://" not in page and "https://" not in page
    assert json.loads((ws.debug_dir / "tuning" / "result.json").read_text())["ratio"] == told["ratio"]

    before = ws.debug_dir / "tuning" / "before_impl.py"
    timed = command("benchmark", ws.root, "--modes", "sim", "--levels", "L2", "--compare", before, "--json")
    assert timed.code == 0 and timed.report["compared"]["rows"][0]["ratio"] > 0, timed.stderr

    kept = command("regress", ws.root, "--json")
    assert kept.code == 0, kept.stdout + kept.stderr
    assert [(step["name"], step["passed"]) for step in kept.report["steps"]] == [
        (name, True) for name in ("precision", "suite", "layout", "performance")
    ]
    tuned = ws.impl.read_text(encoding="utf-8")
    base = ws.debug_dir / "tuned.py"
    base.write_text(tuned, encoding="utf-8")
    ws.impl.write_text(first, encoding="utf-8")
    slower = command("regress", ws.root, "--base", base)
    assert slower.code == 1 and "FAIL performance" in slower.stdout and "take the change back" in slower.stdout
    ws.impl.write_text(tuned.replace("x_tile - y_tile", "y_tile - x_tile"), encoding="utf-8")
    wrong = command("regress", ws.root, "--base", base)
    assert wrong.code == 1 and "FAIL precision" in wrong.stdout and "FAIL suite" in wrong.stdout and "debugger" in wrong.stdout


def test_the_first_wrong_case_ends_the_judging_of_a_candidate(ws: OpWorkspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused is refused: a long suite is not run to its end."""
    keeper = object.__new__(acceptance.Gatekeeper)
    keeper._ws, keeper._jobs, keeper._late = ws, 1, lambda: False
    monkeypatch.setattr(keeper, "_clock", SimpleNamespace(mode=Mode.SIM), raising=False)
    running = {child.pid for child in psutil.Process().children(recursive=True)}
    heard = []
    stop = acceptance._stop_at_a_wrong_case
    monkeypatch.setattr(acceptance, "_stop_at_a_wrong_case", lambda record, total: heard.append(record.id) or stop(record, total))
    wrong = ws.impl.read_text(encoding="utf-8").replace("x_tile - y_tile", "y_tile - x_tile")
    folder = ws.debug_dir / "candidate"
    assert keeper._suite(wrong, folder, acceptance.Verdict()).startswith("the suite refuses it: FAIL, even sim: ")
    assert heard == ["even"] and not (folder / "report.json").exists() and left_running(running) == []
    keeper._late = lambda: True
    with pytest.raises(acceptance.OutOfTime):
        keeper._suite(ws.impl.read_text(encoding="utf-8"), folder, acceptance.Verdict())
    assert heard == ["even"] and not (folder / "report.json").exists() and left_running(running) == []


@pytest.mark.slow
def test_a_rule_that_the_earlier_kernel_breaks_too_did_not_get_worse(ws: OpWorkspace) -> None:
    assert verify(ws.root).code == 0
    right = ws.impl.read_text(encoding="utf-8")
    last = right.rindex("    return ")
    broken = f"{right[:last]}    _ = x + 0\n{right[last:]}"
    base = ws.debug_dir / "base.py"
    ws.debug_dir.mkdir(exist_ok=True)
    ws.impl.write_text(broken, encoding="utf-8")
    for earlier, passed, told in ((broken, True, "no more is broken than in the earlier kernel: OL62"), (right, False, "OL62: ")):
        base.write_text(earlier, encoding="utf-8")
        steps = {step["name"]: step for step in command("regress", ws.root, "--base", base, "--json").report["steps"]}
        assert steps["layout"]["passed"] is passed and steps["layout"]["told"].startswith(told)


@pytest.mark.slow
def test_a_search_that_is_killed_goes_on(ws: OpWorkspace) -> None:
    """kill -9 in mid-search: what was tried is known, and is not tried again."""
    assert verify(ws.root).code == 0
    words = [sys.executable, "-m", "pypto_op.cli", "tune", str(ws.root), "--mode", "sim", "--jobs", "1", "--trials", "60"]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None and len(_tried(ws)) < 3:
            time.sleep(0.05)
        process.kill()
    known = len(_tried(ws))
    assert list(ws.debug_dir.glob("tuning-*")), "what a kill leaves"
    assert known >= 3 and not ws.tuning_report.exists()
    answer = tune(ws, "--resume", "--jobs", "1", "--trials", str(known), "--mutants", "0", "--dry-run", "--json")
    assert answer.code == 0, answer.stderr
    assert (answer.report["resumed"], answer.report["tried"]) == (known - 1, 1), "the baseline is one of the lines"
    assert not list(ws.debug_dir.glob("tuning-*"))
    numbers = [json.loads(line)["number"] for line in _tried(ws)]
    assert numbers == list(range(known + 1)), "each candidate has one line, those of the first sitting too"


def _tried(ws: OpWorkspace) -> list[str]:
    """Whole lines of the ledger, the baseline's among them."""
    files = list((ws.debug_dir / "tuning").glob("*/candidates.jsonl"))
    return [line for file in files for line in file.read_text(encoding="utf-8").split("\n")[:-1]]
