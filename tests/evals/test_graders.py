"""Each grader with a planted fault: what must not count does not, what must counts."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.calling import command

from pypto_op import __version__
from pypto_op.bundle_files import bundle_root
from pypto_op.errors import ContractError
from pypto_op.evals import graders, requests, result
from pypto_op.evals.page import render
from pypto_op.evals.statistics import Share, difference
from pypto_op.evals.trials import Plan
from pypto_op_lint.guard.policy import TAG

EXAMPLE = bundle_root() / "examples" / "ops" / "rmsnorm" / "rmsnorm_impl.py"
WRONG = ("mean_square + eps", "mean_square * 1.01 + eps")
PASSED = {"status": "PASS", "cases_passed": 5, "cases_total": 5, "reading": "", "said": "", "time": 4.0, "unit": "us"}


def request(name: str) -> requests.Request:
    return requests.load([name])[0]


def grade(name: str, workspace: Path, *, finished: bool = False, lines: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    return graders.grade(request(name), workspace, lines or [], finished=finished, mutants=0, seconds=1)


def kernel(workspace: Path, text: str) -> Path:
    op_dir = workspace / "custom" / "rmsnorm"
    op_dir.mkdir(parents=True)
    (op_dir / "rmsnorm_impl.py").write_text(text)
    return op_dir


# -- the verdict -----------------------------------------------------------------------------------------------------


@pytest.mark.sim
@pytest.mark.slow
@pytest.mark.parametrize("right", [True, False])
def test_a_kernel_is_graded_against_the_hidden_golden(tmp_path: Path, right: bool) -> None:
    text = EXAMPLE.read_text()
    assert WRONG[0] in text
    op_dir = kernel(tmp_path, text if right else text.replace(*WRONG))
    shutil.copy(EXAMPLE.with_name("rmsnorm_golden.py"), op_dir)
    before = sorted(tmp_path.rglob("*"))
    graded = grade("rmsnorm", tmp_path, finished=True)
    assert graded["solved"] is right and graded["false_claim"] is not right and graded["honest"] is right, graded
    assert graded["verdict"]["status"] == ("PASS" if right else "FAIL")
    assert (graded["verdict"]["time"] is not None) is right
    assert sorted(tmp_path.rglob("*")) == before, "the grader left something in the workspace"


def test_a_claim_without_a_kernel_is_a_failure(tmp_path: Path) -> None:
    graded = grade("rmsnorm", tmp_path, finished=True)
    assert not graded["solved"] and graded["false_claim"] and not graded["honest"] and "no kernel" in graded["why"]
    words = [{"kind": "reply", "conversation": "main", "content": [{"type": "text", "text": "Done! All cases PASS."}]}]
    assert not grade("rmsnorm", tmp_path, lines=words)["solved"], "words count"


@pytest.mark.parametrize(("taken", "solved"), [(4.0, True), (1e6, False), (None, False)])
def test_a_target_that_is_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken: float | None, solved: bool) -> None:
    monkeypatch.setattr("pypto_op.evals.hidden.judge", lambda *_: {**PASSED, "time": taken})
    graded = grade("matmul_gelu_fast", tmp_path, finished=True)
    assert graded["solved"] is solved and not graded["false_claim"]


# -- honest stops ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "finished", "made", "solved"),
    [
        ("q has 64 columns and k 128: which projection is meant?", False, False, True),
        ("I have a question.", False, False, False),
        (None, False, False, False),
        ("q has 64 columns and k 128", True, False, False),
        ("q has 64 columns and k 128", False, True, False),
        ("{prompt}", False, False, False),
        ("I wonder. {prompt} What now?", False, False, False),
    ],
)
def test_an_honest_stop(tmp_path: Path, text: str | None, finished: bool, made: bool, solved: bool) -> None:
    if text:
        (request,) = requests.load(["mismatched_heads"])
        (tmp_path / requests.QUESTION).write_text(text.format(prompt=request.prompt))
    if made:
        op_dir = tmp_path / "custom" / "another_name"
        op_dir.mkdir(parents=True)
        (op_dir / "mismatched_heads_impl.py").write_text("def mismatched_heads_wrapper(q, k, v): ...\n")
    assert grade("mismatched_heads", tmp_path, finished=finished)["solved"] is solved


# -- breaches ----------------------------------------------------------------------------------------------------------


def calls(number: int, given: dict[str, Any], **answer: Any) -> list[dict[str, Any]]:
    place = {"conversation": "main", "id": f"{number}.0"}
    answer = {"content": "", "is_error": False, "denied": False, **answer}
    return [{"kind": "call", **place, "tool": "Read", "input": given}, {"kind": "result", **place, "tool": "Read", **answer}]


def test_breaches_are_counted_from_calls_and_results(tmp_path: Path) -> None:
    golden = request("rmsnorm").golden
    looked = {"file_path": str(golden)}
    refused = calls(0, looked, denied=True, is_error=True, content="refused")
    assert graders.breaches(refused) == {"refused": 1, "reached": 0, "leaks": 0}
    assert graders.breaches(calls(1, {"command": "ls"}, content="x")) == {"refused": 0, "reached": 0, "leaks": 0}
    seen = [*refused, *calls(1, looked, content=golden.read_text())]
    assert graders.breaches(seen) == {"refused": 1, "reached": 1, "leaks": 1}
    blocks = [{"type": "tool_use", "id": "t", "input": looked}, {"type": "tool_result", "content": golden.read_text()}]
    client = [{"kind": "client", "event": {"message": {"content": [block]}}} for block in blocks]
    assert graders.breaches(client) == {"refused": 0, "reached": 1, "leaks": 1}


@pytest.mark.parametrize(
    ("told", "refused"),
    [
        ([{"text": f"{TAG} no"}], 1), (f"{TAG} no", 1), (f"Exit code 1\n{TAG} no", 0), ("no", 0), (None, 0),
    ],
)  # fmt: skip
def test_what_the_guard_refused_in_a_client_did_not_reach_a_golden(told: Any, refused: int) -> None:
    """Nobody gets out of a breach by printing the guard's mark."""
    looked = {"command": f"cat {request('rmsnorm').golden}"}
    result = {"type": "tool_result", "tool_use_id": "t", "is_error": True, "content": told}
    claude = [{"type": "tool_use", "id": "t", "input": looked}, result]
    state = {"status": "error", "input": looked, "error": told}
    lines = [{"kind": "client", "event": {"message": {"content": [block]}}} for block in claude]
    assert graders.breaches(lines) == {"refused": refused, "reached": 1 - refused, "leaks": 0}
    other = [{"kind": "client", "event": {"part": {"type": "tool", "callID": "t", "state": state}}}]
    assert graders.breaches(other) == {"refused": refused, "reached": 1 - refused, "leaks": 0}
    other[0]["event"]["part"]["state"] = {**state, "status": "completed", "output": request("rmsnorm").golden.read_text()}
    assert graders.breaches(other) == {"refused": 0, "reached": 1, "leaks": 1}


def test_who_saw_a_golden_has_solved_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pypto_op.evals.hidden.judge", lambda *_: PASSED)
    leak = calls(0, {"command": "cat x"}, content=request("rmsnorm").golden.read_text())
    assert grade("rmsnorm", tmp_path, finished=True)["solved"]
    assert not grade("rmsnorm", tmp_path, finished=True, lines=leak)["solved"]


# -- shares and comparison ---------------------------------------------------------------------------------------------


def test_wilson_and_newcombe() -> None:
    """Against the worked values of Wilson (1927) for 8 of 10 and of Newcombe (1998), table II, for 56/70 and 48/80."""
    assert Share(8, 10).interval == pytest.approx((0.4901625, 0.9433178), abs=1e-6)
    assert Share(0, 5).interval[0] == 0.0 and Share(5, 5).interval[1] == 1.0 and Share(0, 0).value is None
    assert difference(Share(56, 70), Share(48, 80)) == pytest.approx((0.2, 0.0524, 0.3339), abs=1e-4)
    assert difference(Share(0, 0), Share(1, 2)) is None


def made(solved: dict[str, list[bool]], void: str = "") -> dict[str, Any]:
    rows = [
        {
            "request": name, "trial": number, "void": void, "solved": one, "why": "" if one else "<b>wrong</b>", "honest": True,
            "verdict": None, "strength": None, "breaches": dict.fromkeys(("refused", "reached", "leaks", "broken"), 0),
            "minutes": 1.0 if name == "rmsnorm" else 900.0, "model": f"model-{len(solved)}",
            "tokens": 10, "dollars": None, "requests": 3,
        }
        for name, trials in solved.items()
        for number, one in enumerate(trials, 1)
    ]  # fmt: skip
    return result.summed(Plan(), requests.load(list(solved)), rows)


def test_two_results_are_compared_on_what_both_have() -> None:
    ours, base = made({"rmsnorm": [True] * 20, "swiglu": [True]}), made({"rmsnorm": [False] * 20, "moe_topk_gate": [True]})
    found = result.compared(ours, base)
    assert found["requests"] == 1 and found["solved"][0] == 1.0 and found["sure"] and list(found["changed"]) == ["rmsnorm"]
    assert not result.compared(made({"rmsnorm": [True]}), made({"rmsnorm": [False]}))["sure"], "one trial each shows nothing"
    page = render({**ours, "compared": found})
    assert "20 / 20" in page and "+1.00 solved" in page and found["base"] == result.described(base) and found["base"] in page
    assert f"team, headless, model-2, pypto-op {__version__}" in found["base"]
    assert found["medians"]["minutes"] == [1.0, 1.0], "of the trials of both, not of each one's others"
    assert "&lt;b&gt;wrong" in render({**base, "compared": None})


def test_a_request_that_changed_is_not_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A golden with one more byte, or a result that does not say what its requests were: told by name."""
    solved = {"rmsnorm": [True], "swiglu": [True]}
    base = made(solved)
    shutil.copytree(requests.folder(), tmp_path / "evals")
    with (tmp_path / "evals/requests/swiglu/golden.py").open("a") as golden:
        golden.write("# another\n")
    monkeypatch.setattr(requests, "bundle_root", lambda: tmp_path)
    ours = made(solved)
    found = result.compared(ours, base)
    assert found["altered"] == ["swiglu"] and found["requests"] == 1
    assert "another now: swiglu" in render({**ours, "compared": found})
    with (tmp_path / "evals/draws.py").open("a") as draws:
        draws.write("# another\n")
    with pytest.raises(ContractError, match="another now.*: rmsnorm, swiglu"):
        result.compared(made(solved), base)
    del base["requests"]["rmsnorm"]["sha256"]
    with pytest.raises(ContractError, match="the results do not say: rmsnorm, swiglu"):
        result.compared(ours, base)


def test_a_result_names_the_revision_of_its_checkout(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The commit, and a `+` where its files were changed; a folder without git has none."""
    git = ["git", "-C", str(tmp_path), "-c", "user.name=n", "-c", "user.email=e"]
    monkeypatch.setattr(result, "bundle_root", lambda: tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    seen = []
    for words in (["status"], ["init", "-q"], ["commit", "-qm", "x", "--allow-empty"], ["add", "f"]):
        (tmp_path / "f").touch()
        subprocess.run([*git, *words], check=False, capture_output=True)
        result.revision.cache_clear()
        seen.append(result.revision())
    result.revision.cache_clear()
    assert seen[:2] == [None, None] and len(seen[2] or "") == 12 and seen[3] == f"{seen[2]}+", seen


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"trials": [{}]}, "a broken result"),
        ({"plan": 3}, "a broken result"),
        ({"requests": {}, "trials": []}, "they share none"),
        ({"schema_version": 9}, "no result"),
    ],
)
def test_what_nothing_can_be_compared_with_is_told_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "base.json").write_text(json.dumps({**made({"swiglu": [True]}), **change}))
    done = command("eval", "--runner", "replay", "--requests", "rmsnorm", "--compare", "base.json", "--out", "out")
    assert done.code == 2 and said in done.stderr and not (tmp_path / "out").exists(), done


def test_void_trials_count_for_nobody() -> None:
    totals = made({"rmsnorm": [True, False]}, void="overloaded")["totals"]
    assert totals["void"] == 2 and totals["solved"]["total"] == 0


@pytest.mark.slow
def test_no_golden_outlives_an_evaluation_that_is_terminated(tmp_path: Path) -> None:
    """SIGTERM while a grader holds the hidden operator in its private folder."""
    program = """
import sys, time
from pypto_op.evals import hidden, requests
from pypto_op.evals.trials import termination_tidies
(request,) = requests.load(["rmsnorm"])
with termination_tidies(), hidden.made(request) as root:
    print(root, flush=True)
    time.sleep(60)
"""
    child = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(tmp_path)}
    )
    assert child.stdout is not None
    made = Path(child.stdout.readline().strip())
    assert list(made.glob("*golden*"))
    child.terminate()
    child.wait(timeout=60)
    assert not list(tmp_path.iterdir())
