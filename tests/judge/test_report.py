"""evaluation_report.json: what is in it, what may never be in it, and what the exit code makes of it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import psutil
import pytest
from click.testing import CliRunner
from tests import calling
from tests.passes import pass_for_bytes
from tests.telling import told_lines

from pypto_op.backends import calculator
from pypto_op.backends.toolchain import Toolchain
from pypto_op.cli import root as command
from pypto_op.documents import schema
from pypto_op.errors import ContractError
from pypto_op.judge.cases.request import Request
from pypto_op.judge.verify import verify_operator
from pypto_op.proof import evidence
from pypto_op.vocabulary import Mode
from pypto_op.workspace import OpWorkspace

from .judging import CASES, Answer, add_to_wrapper, left_running, place, verify

pytestmark = [pytest.mark.sim, pytest.mark.usefixtures("numeric")]


@pytest.fixture(scope="module")
def passed(tmp_path_factory: pytest.TempPathFactory) -> tuple[OpWorkspace, Answer]:
    """A PASS of sum_diff; read only."""
    ws = place("sum_diff", tmp_path_factory.mktemp("passed"), cases=CASES)
    return ws, verify(ws.root)


# -- a report that was written -----------------------------------------------------------------------------------


def test_schema_and_bytes(passed: tuple[OpWorkspace, Answer]) -> None:
    ws, answer = passed
    assert answer.code == 0
    assert answer.stdout == ws.report.read_text(encoding="utf-8"), "--json prints the file's bytes"
    schema.check(answer.report, "evaluation_report", file=ws.report)


def test_what_a_pass_says(passed: tuple[OpWorkspace, Answer]) -> None:
    ws, answer = passed
    report = answer.report
    assert (report["op_name"], report["impl_file"], report["wrapper"]) == ("sum_diff", "sum_diff_impl.py", "sum_diff_wrapper")
    assert (report["cases_total"], report["cases_passed"], report["cases_precision"]) == (3, 3, 3), "and one drawn shape"
    assert report["per_mode_status"] == {"sim": "PASS"}
    assert report["first_failure"] is None and report["error"] is None
    assert report["selection"] == {"levels": None, "case": None, "complete": True}
    assert report["modes"]["sim"]["numeric"] and report["modes"]["sim"]["caveats"]
    seeds = {check["id"]: check["seeds"] for check in report["checks"]}
    assert seeds.pop("fresh_N") == [report["fresh_shapes"]["seed"]]
    assert all(len(set(own)) == 2 for own in seeds.values()), "a fresh seed besides the suite's"
    now = evidence.file_hashes(ws)
    assert {name: report["hashes"][name] for name in now} == now
    assert report["hashes"]["policy"] == evidence.policy_hash(report["policy"])


def test_the_seal_holds_every_field(operator: OpWorkspace) -> None:
    add_to_wrapper(operator, "total = total[:1]")
    report = verify(operator.root).report
    assert report["status"] == "FAIL" and evidence.check_seal(report)
    changes: dict[str, Any] = {"status": "PASS", "cases_passed": 1, "first_failure": None, "stdout": "x", "seconds": 0.0}
    for key, value in changes.items():
        assert not evidence.check_seal({**report, key: value}), key
    assert pass_for_bytes(operator) is None


def test_a_pass_counts_for_its_bytes_only(operator: OpWorkspace) -> None:
    assert verify(operator.root).code == 0
    assert pass_for_bytes(operator) is not None
    operator.impl.write_text(operator.impl.read_text() + "\n# another byte\n")
    assert pass_for_bytes(operator) is None


def test_a_word_on_a_part_leaves_the_pass_of_the_whole(tmp_path: Path) -> None:
    """`benchmark` and `tune` asked for it anew after a look at one case, or at another file."""
    operator = place("sum_diff", tmp_path, cases=CASES[:2], most=80)
    assert verify(operator.root).code == 0
    whole = operator.report.read_text()
    other = tmp_path / operator.impl.name
    other.write_text(operator.impl.read_text() + "\n# another byte\n")
    for part in (("--case", "tile"), ("--seed", "7"), ("--impl", str(other))):
        verify(operator.root, *part)
        kept = pass_for_bytes(operator)
        assert kept is not None and kept["seal"] == json.loads(whole)["seal"], part
    assert operator.report.read_text() != whole, "the last word stands where each does"
    add_to_wrapper(operator, "total = total * 1")
    assert pass_for_bytes(operator) is None, "it counts for its bytes"


@pytest.mark.parametrize(("end", "stands"), [(KeyboardInterrupt(), True), (ContractError("nobody knows"), False)])
def test_an_interrupted_run_leaves_the_pass_of_the_same_bytes(
    operator: OpWorkspace, monkeypatch: pytest.MonkeyPatch, end: BaseException, stands: bool
) -> None:
    """Ctrl-C in the second verify, and `benchmark` and `tune` asked for a third; a run that ends says the last word."""
    assert verify(operator.root).code == 0
    monkeypatch.setattr("pypto_op.judge.verify.run_cases", Mock(side_effect=end))
    assert verify(operator.root).code == (130 if stands else 2)
    assert json.loads(operator.report.read_text())["status"] == "ERROR"
    assert (pass_for_bytes(operator) is not None) is stands


def test_the_same_from_the_command_line(operator: OpWorkspace) -> None:
    command = [sys.executable, "-m", "pypto_op.cli", "verify", str(operator.root), "--modes", "sim", "--json", "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert all(line.startswith("pypto-op: ") for line in done.stderr.splitlines()), "nothing but what it is at, when it is slow"
    assert done.stdout == operator.report.read_text()


# -- requests that select nothing, and modes that are not there ------------------------------------------------------


@pytest.mark.parametrize("arguments", [("--levels", "L5"), ("--levels", "L3", "--case", "tile")])
def test_a_selection_of_nothing_is_no_pass(operator: OpWorkspace, arguments: tuple[str, ...]) -> None:
    answer = verify(operator.root, *arguments)
    assert answer.code == 2
    assert (answer.report["status"], answer.report["cases_total"]) == ("ERROR", 0)
    assert answer.report["error"]["kind"] == "contract"
    assert "no case" in answer.report["error"]["message"]


@pytest.mark.parametrize(
    "arguments",
    [("--levels", "L9"), ("--levels", ","), ("--modes", "gpu"), ("--jobs", "0")],
)
def test_a_senseless_request_is_refused_in_one_line(operator: OpWorkspace, arguments: tuple[str, ...]) -> None:
    answer = verify(operator.root, *arguments)
    assert (answer.code, answer.stdout) == (2, "")
    assert answer.stderr.startswith("pypto-op verify: Invalid value") and len(told_lines(answer.stderr)) == 1
    assert not operator.report.exists()


def test_a_case_that_there_is_not_is_told_before_anything_runs(operator: OpWorkspace) -> None:
    answer = verify(operator.root, "--case", "nobody")
    assert (answer.code, answer.stdout) == (2, "") and len(told_lines(answer.stderr)) == 1
    assert "no case matches the case 'nobody'" in answer.stderr and "tile" in answer.stderr
    assert not operator.report.exists()


STRUCTURE = {"id": "form", "level": "L1", "shape": {"N": 16, "D": 32}, "precision": False}
PARTS = {
    "a level": (
        ("--levels", "L2"),
        {"levels": ["L2"], "case": None, "complete": False, "not_judged": 2, "not_judged_levels": {"L1": 1, "L3": 1}},
        "2 of 3 were not judged (1 of L1, 1 of L3)",
    ),
    "a case": (
        ("--case", "tile"),
        {"levels": None, "case": "tile", "complete": False, "not_judged": 2, "not_judged_levels": {"L1": 1, "L3": 1}},
        "2 of 3 were not judged (1 of L1, 1 of L3)",
    ),
    "two levels": (
        ("--levels", "L2,L3"),
        {"levels": ["L2", "L3"], "case": None, "complete": False, "not_judged": 1, "not_judged_levels": {"L1": 1}},
        "1 of 3 were not judged (1 of L1)",
    ),
    "another tolerance": (
        ("--policy", "mere_mare@1"),
        {"levels": None, "case": None, "complete": False, "policy": "other"},
        "another tolerance than SPEC.md's was used",
    ),
    "a seed that was known before": (
        ("--seed", "5"),
        {"levels": None, "case": None, "complete": False, "seed": 5},
        "the second seed was named, so a kernel can be fitted to what it draws",
    ),
}


@pytest.mark.parametrize("how", PARTS)
def test_a_part_is_partial_everywhere(tmp_path: Path, how: str) -> None:
    words, selection, sentence = PARTS[how]
    ws = place("sum_diff", tmp_path, cases=[STRUCTURE, *CASES], most=80)
    answer = verify(ws.root, *words, as_json=False)
    report = json.loads(ws.report.read_text())
    assert answer.code == 0, "all that was asked for passed"
    assert (report["status"], report["per_mode_status"]) == ("PARTIAL", {"sim": "PARTIAL"})
    assert report["selection"] == selection
    schema.check(report, "evaluation_report", file=ws.report)
    last = answer.stdout.strip().splitlines()[-1]
    assert last.startswith("PARTIAL  sum_diff: ") and sentence in last and "PASS" not in last
    assert "that is no verdict on it" in answer.stdout
    assert pass_for_bytes(ws) is None
    html = CliRunner().invoke(command, ["report", str(ws.root)])
    page = (ws.eval_dir / "report.html").read_text()
    assert html.exit_code == 0 and 'badge PARTIAL">PARTIAL' in page and sentence in page.replace("&#39;", "'")
    assert '<span class="badge PASS">PASS</span>\n</header>' not in page


@pytest.mark.parametrize("words", [("--levels", "L1,L2,L3,L4,L5"), ("--levels", "L1,L2,L3")])
def test_all_cases_are_the_whole_however_they_are_named(tmp_path: Path, words: tuple[str, ...]) -> None:
    ws = place("sum_diff", tmp_path, cases=[STRUCTURE, *CASES], most=80)
    answer = verify(ws.root, *words)
    assert (answer.code, answer.report["status"], answer.report["selection"]["complete"]) == (0, "PASS", True)
    assert pass_for_bytes(ws) is not None


@pytest.mark.parametrize("words", [("--levels", "L1"), ("--case", "form")])
def test_a_part_without_numbers_is_no_verdict(tmp_path: Path, words: tuple[str, ...]) -> None:
    """The kernel is wrong, and its structure is right: `--levels L1` once passed it."""
    ws = place("sum_diff", tmp_path, cases=[STRUCTURE, *CASES], most=80)
    assert "x_tile * 2.0 + y_tile" in ws.impl.read_text()
    ws.impl.write_text(ws.impl.read_text().replace("x_tile * 2.0 + y_tile", "x_tile * 3.0 + y_tile"))
    answer = verify(ws.root, *words, as_json=False)
    report = json.loads(ws.report.read_text())
    assert (answer.code, report["status"], report["per_mode_status"]) == (2, "ERROR", {"sim": "SKIPPED"})
    assert report["error"]["kind"] == "contract" and "2 others do: select of L2, L3" in report["error"]["message"]
    assert "1 of 1" not in answer.stdout and "REJECTED: no selected case compares numbers" in answer.stdout
    assert answer.stdout.count("no selected case") == 1
    assert "no verdict (sim compared no number)" in answer.stdout, "it ran; the report's word for it is SKIPPED"
    assert verify(ws.root).report["status"] == "FAIL"


def test_another_suite_is_no_pass_of_the_operator(tmp_path: Path) -> None:
    ws = place("sum_diff", tmp_path, cases=CASES, most=80)
    other = tmp_path / "custom" / "sum_diff" / "_debug" / "other.json"
    other.parent.mkdir(exist_ok=True)
    other.write_text(json.dumps({**json.loads(ws.suite.read_text()), "cases": json.loads(ws.suite.read_text())["cases"][:1]}))
    report = verify(ws.root, "--suite", str(other)).report
    assert (report["status"], report["selection"]["suite"], report["selection"]["not_judged"]) == ("PARTIAL", "other", 1)
    other.write_bytes(ws.suite.read_bytes())
    assert verify(ws.root, "--suite", str(other)).report["status"] == "PASS", "the very same cases"


# -- where a report may lie ------------------------------------------------------------------------------------------


NOT_A_REPORT = ["SPEC.md", "sum_diff_golden.py", "sum_diff_impl.py", "eval/adversarial_suite.json", "eval/test_inputs.py"]
NOT_A_REPORT += ["DESIGN.md", "eval/perf_result.json", "notes.txt", "data.json", "_debug/case.json"]


@pytest.mark.parametrize("name", NOT_A_REPORT)
def test_a_report_is_written_over_nothing_else(operator: OpWorkspace, name: str) -> None:
    target = operator.root / name
    there = target.exists() or name in ("notes.txt", "data.json", "_debug/case.json")
    if not target.exists() and there:
        target.parent.mkdir(exist_ok=True)
        target.write_text('{"op_name": "mine", "checks": []}')
    before = target.read_bytes() if there else None
    for words in (("--report", str(target)), ("--self-test", "--report", str(target))):
        answer = verify(operator.root, *words)
        assert (answer.code, answer.stdout) == (2, "")
        assert Path(name).name in answer.stderr and len(told_lines(answer.stderr)) == 1
        assert (target.read_bytes() if target.exists() else None) == before
    assert not operator.report.exists(), "refused before anything is judged"


@pytest.mark.parametrize("name", ["SPEC.md", "sum_diff_golden.py", "eval/evaluation_report.json", "DESIGN.md", "notes.html"])
def test_a_page_is_written_over_nothing_else(passed: tuple[OpWorkspace, Answer], tmp_path: Path, name: str) -> None:
    ws, _ = passed
    target = tmp_path / name if name == "notes.html" else ws.root / name
    if name == "notes.html":
        target.write_text("<!doctype html><p>mine</p>")
    before = target.read_bytes() if target.exists() else None
    done = calling.command("report", ws.root, "--out", target)
    assert done.code == 2 and len(told_lines(done.stderr)) == 1 and target.name in done.stderr
    assert (target.read_bytes() if target.exists() else None) == before


def test_a_page_may_replace_a_page(passed: tuple[OpWorkspace, Answer], tmp_path: Path) -> None:
    ws, _ = passed
    for _ in range(2):
        done = CliRunner().invoke(command, ["report", str(ws.root), "--out", str(tmp_path / "page.html")])
        assert done.exit_code == 0
    assert "pypto-op" in (tmp_path / "page.html").read_text()[:4096]


@pytest.mark.parametrize("action", ["verify", "benchmark"])
def test_a_result_of_triton_is_written_over_nothing_else(tmp_path: Path, action: str) -> None:
    (tmp_path / "soft_torch.py").write_text("mine")
    words = ["triton", action, "--op_name", "soft", "--verify_dir", str(tmp_path), "--output", str(tmp_path / "soft_torch.py")]
    done = calling.command(*words)
    assert done.code != 0 and "is not overwritten" in done.stderr
    assert (tmp_path / "soft_torch.py").read_text() == "mine"


def test_a_report_may_replace_a_report(operator: OpWorkspace) -> None:
    target = operator.debug_dir / "mine.json"
    for _ in range(2):
        assert verify(operator.root, "--report", str(target)).code == 0
    assert json.loads(target.read_text())["status"] == "PASS" and not operator.report.exists()
    link = operator.root / "link.json"
    link.symlink_to(operator.golden)
    golden = operator.golden.read_bytes()
    assert verify(operator.root, "--report", str(link)).code == 2
    assert operator.golden.read_bytes() == golden and link.is_symlink()


def npu_is_there() -> bool:
    from pypto_op.backends.registry import get_backend
    from pypto_op.vocabulary import Mode

    return get_backend(Mode.NPU).availability().ok


@pytest.mark.skipif(npu_is_there(), reason="this machine has an NPU")
def test_no_mode_available(operator: OpWorkspace) -> None:
    answer = verify(operator.root, modes="npu")
    assert answer.code == 3
    report = answer.report
    assert (report["status"], report["error"]["kind"], report["per_mode_status"]) == ("ERROR", "infra", {"npu": "SKIPPED"})
    assert report["modes"]["npu"]["reason"]
    assert pass_for_bytes(operator) is None


@pytest.mark.skipif(npu_is_there(), reason="this machine has an NPU")
def test_a_mode_that_is_not_there_is_skipped_beside_one_that_is(operator: OpWorkspace) -> None:
    answer = verify(operator.root, modes="sim,npu")
    assert answer.code == 0
    assert answer.report["per_mode_status"] == {"sim": "PASS", "npu": "SKIPPED"}


def test_structure_only_is_never_a_pass(operator: OpWorkspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a C++ tool chain there are no numbers, so a precision case cannot be judged."""
    found = calculator.find_ingredients()
    assert found is not None
    none = Toolchain({}, ("g++",), {})
    monkeypatch.setattr(calculator, "find_toolchain", lambda: none)
    if calculator.find_ingredients().toolchain.complete:  # type: ignore[union-attr]
        pytest.fail("the tool chain is still found")
    answer = verify(operator.root)
    report = answer.report
    assert (report["status"], answer.code) == ("ERROR", 3)
    assert report["modes"]["sim"]["numeric"] is False
    assert report["modes"]["sim"]["caveats"][0].startswith("structure only")
    assert (report["cases_passed"], report["cases_precision"]) == (0, 0)
    add_to_wrapper(operator, "total = total[:1]")
    assert verify(operator.root).report["first_failure"]["reason"] == "shape", "a wrong structure is still seen"


# -- a stale report --------------------------------------------------------------------------------------------------


def test_an_earlier_pass_does_not_stand_when_the_judge_breaks(operator: OpWorkspace, monkeypatch: pytest.MonkeyPatch) -> None:
    operator.report.write_text('{"status": "PASS"}')

    def broken(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("pypto_op.judge.verify.run_cases", broken)
    assert verify(operator.root).code == 130
    left = json.loads(operator.report.read_text())
    assert (left["status"], left["error"]["kind"]) == ("ERROR", "infra") and "interrupted" in left["error"]["message"]


def test_a_verdict_that_is_stopped_leaves_nothing_running(clean_workspace: Path) -> None:
    """Its lanes went on in their threads, and asked for references that nobody ended."""
    cases = [{"id": f"L3_{rows}", "level": "L3", "shape": {"N": rows, "D": 32}} for rows in range(3, 27)]
    operator = place("sum_diff", clean_workspace, cases=cases)
    running = {child.pid for child in psutil.Process().children(recursive=True)}

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        verify_operator(operator, Request(modes=[Mode.SIM], jobs=2), progress=stop)
    assert left_running(running) == []


# -- staged operators ------------------------------------------------------------------------------------------------


def test_a_phase_is_judged_against_its_own_golden_only(tmp_path: Path) -> None:
    ws = place("chain", tmp_path)
    ws.module_golden(2).write_text("raise RuntimeError('never loaded')\n")
    ws.golden.write_text("raise RuntimeError('never loaded')\n")
    case = json.loads(ws.suite.read_text())["cases"][-1]["id"]
    answer = verify(ws.root, "--up-to-module", "1", "--case", case)
    assert answer.code == 0, answer.report["first_failure"]
    assert (answer.report["up_to_module"], answer.report["total_modules"]) == (1, 2)
    assert answer.report["impl_file"] == "modules/chain_module1_impl.py"
    assert verify(ws.root, "--case", case).code == 2


def test_a_phase_that_does_not_exist(tmp_path: Path) -> None:
    ws = place("chain", tmp_path)
    answer = verify(ws.root, "--up-to-module", "3")
    assert (answer.code, answer.stdout) == (2, "") and "there is no M3" in answer.stderr
    contradiction = verify(ws.root, "--up-to-module", "2", "--impl", str(ws.module_impl(1)))
    assert (contradiction.code, contradiction.report["status"]) == (2, "ERROR")
