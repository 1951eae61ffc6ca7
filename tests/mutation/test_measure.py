"""`pypto-op mutate` on a real kernel in the simulator: what it finds, what it says, what it leaves behind."""

from __future__ import annotations

import shutil
from pathlib import Path

import psutil
import pytest
from tests.calling import Answer, command
from tests.judge.judging import CASES, OPERATORS, REPOSITORY, files_below, left_running, place
from tests.telling import told_lines

from pypto_op import speaking
from pypto_op.backends import sim
from pypto_op.judge.cases.request import Request
from pypto_op.judge.verify import verify_operator
from pypto_op.mutation import sittings
from pypto_op.vocabulary import Mode
from pypto_op.workspace import OpWorkspace

pytestmark = [pytest.mark.sim, pytest.mark.timeout(600), pytest.mark.usefixtures("numeric")]


def mutate(op_dir: Path, *words: str, jobs: int = 2) -> Answer:
    return command("mutate", op_dir, "--json", "--jobs", jobs, *words)


@pytest.fixture(scope="module")
def said():
    """What the measurement said that it is doing, in its order."""
    words: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(speaking, "now", lambda what, done=0, total=0: words.append(what))
        yield words


@pytest.fixture(scope="module")
def measured(tmp_path_factory, said):
    """One measurement of a suite with a whole tile and a ragged one, and what it left behind."""
    folder = tmp_path_factory.mktemp("measured")
    ws = place("sum_diff", folder, cases=CASES)
    before, running = files_below(folder), {child.pid for child in psutil.Process().children(recursive=True)}
    operators = "dropped_tail,wrong_tail,valid_shape,operand_order,lost_statement,view_offset,output_dtype,loop_start"
    answer = mutate(ws.root, "--operators", operators)
    return answer, files_below(folder) - before, left_running(running)


def test_a_strong_suite_kills_what_is_wrong(measured):
    answer, _, _ = measured
    report = answer.report
    assert answer.code == 0
    assert report["killed"] >= 10 and report["survived"] == 0
    assert report["score"] == 1.0 and 0.5 < report["lower_bound"] < 1.0
    fates = [mutant["status"] for mutant in report["mutants"]]
    for fate in ("killed", "survived", "invalid", "equivalent"):
        assert fates.count(fate) == report[fate]


def test_each_killed_mutant_names_operator_line_diff_and_case(measured):
    killed = [mutant for mutant in measured[0].report["mutants"] if mutant["status"] == "killed"]
    source = (OPERATORS / "sum_diff" / "sum_diff_impl.py").read_text().splitlines()
    for mutant in killed:
        assert mutant["killed_by"] in ("tile", "ragged") and mutant["reason"]
        gone = [line[1:] for line in mutant["diff"].splitlines() if line.startswith("-")]
        assert source[mutant["line"] - 1] in gone
        assert mutant["operator"] in measured[0].stdout
    tails = {mutant["killed_by"] for mutant in killed if mutant["operator"] == "dropped_tail"}
    assert tails == {"ragged"}, "whole tiles have no tail to lose"
    reasons = {mutant["operator"]: mutant["reason"] for mutant in killed}
    assert reasons["operand_order"] == "mismatch"
    assert reasons["lost_statement"] == "unwritten"


def test_equivalent_means_the_same_bits_on_many_inputs(measured):
    same = [mutant for mutant in measured[0].report["mutants"] if mutant["status"] == "equivalent"]
    assert same, "dropping a view's valid shape changes nothing here: the view ends with the tensor"
    for mutant in same:
        assert mutant["likeness"]["differing"] == 0
        assert mutant["likeness"]["probes"] > 20
        assert mutant["detail"] == f"same bits as the kernel on all {mutant['likeness']['probes']} inputs"


def test_each_run_of_a_kernel_that_computes_nothing_says_how_many_are_left(measured, said):
    for kind in ("silent", "sentinel"):
        told = [words.partition(" runs case ")[2] for words in said if f"({kind})" in words]
        assert told == [f"{number} of {len(told)}" for number in range(1, len(told) + 1)] and len(told) > 1


def test_kernels_that_compute_nothing_are_refused_by_every_case(measured):
    runs = {run["kind"]: run for run in measured[0].report["sabotage"]}
    assert set(runs) == {"silent", "sentinel"}
    for run in runs.values():
        assert run["ran"] and run["refused"] and run["cases"] == []
    assert "unwritten" in runs["silent"]["reasons"]
    assert "unwritten" not in runs["sentinel"]["reasons"] and "mismatch" in runs["sentinel"]["reasons"]


def test_nothing_is_left_behind(measured):
    _, files, running = measured
    assert files == set()
    assert running == []


def test_a_weak_suite_lets_mutants_live_and_is_told_which_input_it_lacks(tmp_path):
    ws = place("sum_diff", tmp_path, cases=CASES[:1])
    drawn = mutate(ws.root, "--operators", "dropped_tail").report
    assert drawn["kills_by_case"] == {"fresh_N": 1}, "the shape that each whole verdict draws is a case too"
    report = mutate(ws.root, "--operators", "dropped_tail", "--case", "tile").report
    assert report["survived"] == 1 and report["score"] == 0.0 and report["lower_bound"] == 0.0
    (mutant,) = report["mutants"]
    assert mutant["detail"].startswith("the suite misses it: case tile with N=")
    assert mutant["likeness"]["wrong_on"]


def test_when_the_time_is_over_no_mutant_is_begun_and_the_rest_is_called_a_sample(tmp_path):
    ws = place("sum_diff", tmp_path, cases=CASES[:1])
    report = mutate(ws.root, "--seconds", "0.1", "--no-likeness").report
    assert 1 <= len(report["mutants"]) == report["limit"] < 20 <= report["made"]
    fates = ("killed", "survived", "equivalent", "invalid")
    assert sum(report[fate] for fate in fates) == len(report["mutants"])


def test_what_pypto_refuses_is_invalid_and_counts_for_nobody(measured):
    report = measured[0].report
    invalid = [mutant for mutant in report["mutants"] if mutant["status"] == "invalid"]
    assert any(mutant["operator"] == "output_dtype" and "torch.bfloat16" in mutant["diff"] for mutant in invalid)
    assert {mutant["reason"] for mutant in invalid} <= {"refused by pypto", "refused by its own wrapper"}
    assert all(mutant["killed_by"] is None and mutant["detail"] for mutant in invalid)
    assert report["score"] == report["killed"] / (report["killed"] + report["survived"])


def test_a_mutant_that_never_ends_is_ended(tmp_path):
    ws = place("sum_diff", tmp_path, cases=CASES[:1])
    # It sleeps instead of counting, so that a limit long enough for a busy machine costs no processor time.
    loop = "    left = 3\n    while left > 0:\n        left = left - 1\n        time.sleep(0.05)\n    return total, diff"
    text = ws.impl.read_text()
    assert text.count("    return total, diff") == 1
    ws.impl.write_text("import time\n" + text.replace("    return total, diff", loop))
    report = mutate(ws.root, "--operators", "wrong_operation", "--timeout", "60", "--no-likeness").report
    endless = [mutant for mutant in report["mutants"] if "left + 1" in mutant["diff"]]
    assert [(mutant["status"], mutant["reason"]) for mutant in endless] == [("invalid", "timed_out")]


def test_a_pass_that_is_not_the_kernels_turns_the_command(tmp_path):
    """The judge refuses this file already (`kernel_unused`); the measurement must see it by itself."""
    ws = place("sum_diff", tmp_path, cases=CASES[:1])
    exploit = REPOSITORY / "tests" / "judge" / "exploits" / "handed_closure.py"
    ws.impl.write_text(f"{ws.impl.read_text()}\n\n{exploit.read_text()}")
    answer = mutate(ws.root, "--operators", "swapped_outputs", "--no-likeness")
    assert answer.code == 1
    assert {run["kind"]: run["refused"] for run in answer.report["sabotage"]} == {"silent": False, "sentinel": False}
    assert verify_operator(ws, Request(modes=[Mode.SIM]))["first_failure"]["reason"] == "kernel_unused"


@pytest.mark.parametrize(
    ("words", "change", "problem"),
    [
        (["--operators", "loop_bond"], None, "no mutation operator 'loop_bond'"),
        (["--case", "nosuch"], None, "no case matches the case 'nosuch'"),
        ([], ("x_tile - y_tile", "y_tile - x_tile"), "the unchanged kernel does not pass case tile"),
        ([], ("def sum_diff_wrapper", "def other_wrapper"), "no function sum_diff_wrapper"),
        ([], ("import pypto", "import pypto ("), "not valid Python"),
        (["--operators", "transpose_flag"], None, "find nothing to change"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(tmp_path, words, change, problem):
    ws = place("sum_diff", tmp_path, cases=CASES[:1])
    if change is not None:
        ws.impl.write_text(ws.impl.read_text().replace(*change, 1))
    answer = mutate(ws.root, *words)
    assert answer.code == 2 and answer.stdout == ""
    assert problem in answer.stderr and len(told_lines(answer.stderr)) == 1
    assert not OpWorkspace.at(ws.root).debug_dir.exists()


@pytest.mark.parametrize(
    ("level", "problem"), [("L5", "no case matches levels L5"), ("L9", "use a subset of L1"), ("L1,X", "use a subset of L1")]
)
def test_a_level_that_is_not_there_is_told_before_anything_starts(tmp_path, monkeypatch, level, problem):
    ws = place("sum_diff", tmp_path, cases=CASES[:1])
    monkeypatch.setattr(sim, "warm_up", None)
    answer = mutate(ws.root, "--levels", level)
    assert answer.code == 2 and answer.stdout == ""
    assert problem in answer.stderr and len(told_lines(answer.stderr)) == 1


def test_without_an_implementation_there_is_nothing_to_mutate(tmp_path):
    ws = place("sum_diff", tmp_path, cases=CASES[:1])
    ws.impl.unlink()
    shutil.rmtree(ws.debug_dir, ignore_errors=True)
    answer = mutate(ws.root)
    assert answer.code == 2 and "write the kernel" in answer.stderr


def test_a_kernel_with_helpers_is_measured_too(tmp_path: Path) -> None:
    """A mutant lies elsewhere than the kernel; what the kernel loads beside and above itself is found all the same."""
    ws = place("sum_diff", tmp_path, cases=CASES[:1])
    (ws.root / "sizes.py").write_text("TILE = 16\n")
    (ws.root.parent / "common").mkdir()
    (ws.root.parent / "common" / "two.txt").write_text("2.0")
    two = "TWO = float((Path(__file__).parents[1] / 'common' / 'two.txt').read_text())\n"
    head = f"from pathlib import Path\n\nimport sizes\n\n{two}"
    ws.impl.write_text(
        head + ws.impl.read_text().replace("ROWS = 16", "ROWS = sizes.TILE").replace("x_tile * 2.0", "x_tile * TWO")
    )
    answer = mutate(ws.root, "--operators", "operand_order")
    assert answer.report["killed"] >= 1 and answer.report["survived"] == 0


def test_all_cases_are_asked_about_a_mutant_when_somebody_wants_it(tmp_path):
    ws = place("sum_diff", tmp_path, cases=CASES)
    answer = mutate(ws.root, "--operators", "operand_order", "--all-cases", "--no-likeness")
    assert answer.code == 0
    killed = [mutant for mutant in answer.report["mutants"] if mutant["status"] == "killed"]
    names = [row["id"] for row in answer.report["by_case"]]
    assert killed and set(names) >= {"tile", "ragged"}
    for mutant in killed:
        assert mutant["killed_by"] in mutant["killers"] and mutant["cases_asked"] == len(names)
    assert any(len(mutant["killers"]) > 1 for mutant in killed)
    for row in answer.report["by_case"]:
        assert row["kills"] == sum(row["id"] in mutant["killers"] for mutant in killed)


def test_the_time_budget_covers_the_kernels_own_run_but_for_one_mutant_of_each_job(tmp_path):
    ws = place("sum_diff", tmp_path, cases=CASES)
    answer = mutate(ws.root, "--seconds", "0.01", "--no-likeness")
    report = answer.report
    assert report is not None and len(report["mutants"]) == 2 == report["limit"], answer


def test_a_second_sitting_tries_only_what_the_first_had_no_time_for(tmp_path, monkeypatch):
    monkeypatch.setattr(sittings, "cache_root", lambda: tmp_path / "cache")
    ws = place("sum_diff", tmp_path, cases=CASES[:1])
    words = ("--operators", "operand_order,dropped_tail", "--no-likeness")
    first = mutate(ws.root, *words, "--seconds", "0.01", jobs=1).report
    assert len(first["mutants"]) == 1 < first["made"] and first["resumed"] == 0
    second = mutate(ws.root, *words, "--resume", jobs=1).report
    assert second["resumed"] == 1 and second["sittings"] == 2 and len(second["mutants"]) == second["made"]
    assert first["mutants"][0] in second["mutants"]
    assert second["seconds"] > first["seconds"]
