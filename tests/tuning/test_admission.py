"""What is refused is refused at once: no torch, no pypto, no parser, and one line that says what to do."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock, Mock

import pytest
from tests.judge.judging import place, sim_problem
from tests.program import with_commands

from pypto_op import __version__
from pypto_op.judge.cases.contract import load_contract
from pypto_op.proof import evidence
from pypto_op.tuning import tune
from pypto_op.tuning.acceptance import OutOfTime
from pypto_op.tuning.budget import Budget
from pypto_op.tuning.ledger import Fate, alone
from pypto_op.workspace import OpWorkspace

pytestmark = pytest.mark.usefixtures("private_key")

_HEAVY = ("torch", "pypto", "libcst", "optuna", "triton")
_CALL = f"""
import sys
from pypto_op.cli import main
try:
    main(sys.argv[1:])
finally:
    print([name for name in {_HEAVY} if name in sys.modules])
"""


@pytest.fixture
def ws(tmp_path: Path) -> OpWorkspace:
    return place("sum_diff", tmp_path)


def passed(ws: OpWorkspace) -> None:
    """Lay down a sealed PASS for the bytes that lie there, as the judge would: nothing here runs a kernel."""
    policy = load_contract(ws).policy.as_dict()
    report: dict[str, Any] = {
        "op_name": ws.name, "impl_file": ws.impl.name,
        "status": "PASS", "cases_total": 2, "cases_passed": 2, "cases_precision": 2, "seconds": 10.0,
        "selection": {"levels": None, "case": None, "complete": True}, "up_to_module": 1, "policy": policy,
        "per_mode_status": {"sim": "PASS"}, "tool": {"name": "pypto-op", "version": __version__},
        "closure": {"candidate": {}, "golden": {}, "inputs": {}},
        "hashes": {**evidence.file_hashes(ws), "policy": evidence.policy_hash(policy)},
    }  # fmt: skip
    ws.report.write_text(json.dumps(evidence.seal(report)))


def refused(code: int, told: str, *words: object) -> None:
    """Call a command in a process that has loaded commands alone; it must end with a code and one line, nothing heavy loaded."""
    ended = with_commands("-c", _CALL, *words)
    lines = [line for line in ended.stderr.splitlines() if "so far" not in line]
    assert ended.returncode == code and len(lines) == 1 and told in lines[0], ended.stderr
    assert ended.stdout == "[]\n", "what was loaded for a refusal"


@pytest.mark.parametrize("words", [("--budget", "0"), ("--trials", "0")])
def test_no_budget(ws: OpWorkspace, words: tuple[str, str]) -> None:
    refused(2, "finds nothing", "tune", ws.root, *words)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tune", "benchmark"])
def test_no_pass(ws: OpWorkspace, name: str) -> None:
    refused(2, "no sealed PASS for exactly these bytes", name, ws.root)


@pytest.mark.parametrize("file", ["impl", "suite"])
@pytest.mark.slow
def test_a_file_that_changed_since(ws: OpWorkspace, file: str) -> None:
    passed(ws)
    path: Path = getattr(ws, file)
    path.write_bytes(path.read_bytes() + b"\n")
    refused(2, "no sealed PASS for exactly these bytes", "tune", ws.root)


def test_nothing_to_resume(ws: OpWorkspace) -> None:
    if problem := sim_problem():
        pytest.skip(problem)
    passed(ws)
    refused(2, "no earlier search", "tune", ws.root, "--resume")
    assert not (ws.debug_dir / "tuning").exists(), "a refusal leaves nothing"


def test_another_search_is_told_at_once(ws: OpWorkspace) -> None:
    if problem := sim_problem():
        pytest.skip(problem)
    passed(ws)
    room = ws.debug_dir / "tuning"
    room.mkdir(parents=True)
    with alone(room):
        refused(3, "another search of this operator is running", "tune", ws.root)


def test_no_place_for_a_search(ws: OpWorkspace) -> None:
    if problem := sim_problem():
        pytest.skip(problem)
    passed(ws)
    ws.debug_dir.write_text("a file stands where the folder belongs")
    refused(3, "_debug", "tune", ws.root)


@pytest.mark.parametrize("name", ["tune", "benchmark", "perf", "regress"])
def test_no_tool_chain(ws: OpWorkspace, name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """There is no compiler, and no device either."""
    if problem := sim_problem():
        pytest.skip(problem)
    passed(ws)
    base = tmp_path / "base.py"
    base.write_bytes(ws.impl.read_bytes())
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("CXX", raising=False)
    words = {"regress": ("--base", base), "benchmark": ("--modes", "npu")}.get(name, ())
    refused(3, "run `pypto-op doctor`", name, ws.root, *words)


@pytest.mark.slow
def test_no_kernel_to_compare_with(ws: OpWorkspace, tmp_path: Path) -> None:
    passed(ws)
    refused(2, "name a file with --compare", "benchmark", ws.root, "--compare", tmp_path / "base.py")
    (tmp_path / "base.py").write_text("no PASS")
    refused(2, "no sealed PASS for the kernel to compare with", "benchmark", ws.root, "--compare", tmp_path / "base.py")
    refused(2, "--base", "regress", ws.root)


@pytest.mark.parametrize(("words", "told"), [(("--budget", "0"), "finds nothing"), ((), "there is no verdict")])
def test_a_triton_search(words: tuple[str, ...], told: str, tmp_path: Path) -> None:
    refused(2, told, "triton", "tune", "--op_name", "copy", "--verify_dir", tmp_path, *words)


@pytest.mark.parametrize(
    ("seconds", "verdict", "search", "told"),
    [
        (300, 20, 240, "240 of 300 s to prepare and search, then about 60 s to judge"),
        (300, 66, 150, "150 of 300 s to prepare and search, then about 198 s to judge, 48 s more than the budget has"),
        (10, 0, 10, "10 of 10 s to prepare and search, then about 0 s to judge"),
    ],
)
def test_the_judge_has_a_share_of_the_budget(seconds: float, verdict: float, search: float, told: str) -> None:
    budget = Budget(seconds, verdict)
    assert budget.search == search and budget.told() == told and not budget.late


def test_a_survivor_that_is_not_judged_in_time_waits_for_another_sitting() -> None:
    """`--budget 60` took 100 s where a verdict took 31."""
    survivors = [Mock(number=number, ratio=0.5, fate=Fate.SURVIVED) for number in (3, 4)]
    tuned = Mock(**{"outcome.ranking.return_value": survivors, "outcome.ended": "the budget was spent"}, chosen=None)
    tune._choose(tuned, Mock(**{"judge.side_effect": OutOfTime}), MagicMock(), Budget(60, 31), lambda words: None)
    told = "the budget was spent; 2 survivors were not judged any more, which --resume --budget 186 does"
    assert tuned.outcome.ended == told and tuned.chosen is None
    assert {one.fate for one in survivors} == {Fate.SURVIVED}, "a survivor still, for --resume"


def test_a_budget_ends() -> None:
    spent = Budget(5, 1, time.monotonic() - 4.5)
    assert spent.late and spent.spent >= 4.5, "the verdict in the kernel's place needs the last second"
