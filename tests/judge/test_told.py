"""What a verdict says beside its numbers: what failed, in which file, and what the verifier hands back."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
from tests.calling import command

from pypto_op.errors import ContractError
from pypto_op.judge.adversarial import run_modes
from pypto_op.workspace import OpWorkspace

from .judging import CASES, place, verify

pytestmark = [pytest.mark.sim, pytest.mark.usefixtures("numeric")]


@pytest.fixture
def operator(tmp_path: Path) -> OpWorkspace:
    return place("sum_diff", tmp_path, cases=CASES)


@pytest.fixture(scope="module")
def passed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What a verdict on a right kernel prints."""
    return verify(place("sum_diff", tmp_path_factory.mktemp("passed"), cases=CASES).root, as_json=False).stdout


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> tuple[OpWorkspace, list[str]]:
    """A kernel with wrong numbers, and the lines that its verdict prints."""
    ws = place("sum_diff", tmp_path_factory.mktemp("failed"), cases=CASES)
    ws.impl.write_text(ws.impl.read_text().replace("x_tile * 2.0", "x_tile * 3.0"))
    return ws, verify(ws.root, as_json=False).stdout.strip().splitlines()


@pytest.mark.parametrize(
    ("statement", "module"),
    [
        ("import einops_of_nobody", "No module named 'einops_of_nobody'"),
        ("from torch import no_such_name", "cannot import name 'no_such_name' from 'torch'"),
    ],
)
@pytest.mark.parametrize("file", ["sum_diff_golden.py", "eval/test_inputs.py"])
def test_a_missing_module_is_named_with_its_file(operator: OpWorkspace, file: str, statement: str, module: str) -> None:
    path = operator.root / file
    path.write_text(path.read_text().replace("import torch\n", f"import torch\n{statement}\n") + f"\n{statement}\n")
    answer = verify(operator.root, "--case", "tile")
    message = answer.report["error"]["message"]
    assert (answer.code, answer.report["error"]["kind"]) == (2, "contract")
    assert f"{path.name}:" in message and module in message


def test_a_case_that_no_memory_holds_is_told_so(tmp_path: Path) -> None:
    operator = place("sum_diff", tmp_path, cases=[{**CASES[0], "shape": {"N": 10**12, "D": 10**9}}, CASES[1]])
    answer = verify(operator.root, "--case", "tile")
    message = answer.report["error"]["message"]
    assert answer.code == 2 and "test_inputs.py:" in message and "more memory than there is; make the case smaller" in message


def test_other_words_of_a_golden_stay_behind_the_barrier(operator: OpWorkspace) -> None:
    operator.golden.write_text("import torch\n\n\ndef sum_diff_golden(x, y):\n    raise ValueError(f'{float(x[0, 0])} secret')\n")
    message = verify(operator.root, "--case", "tile").report["error"]["message"]
    assert "sum_diff_golden.py:5" in message and "secret" not in message and "ValueError" not in message


def test_a_failure_within_the_tolerance_shows_what_failed(operator: OpWorkspace) -> None:
    source = operator.impl.read_text()
    operator.impl.write_text(source.replace("    return total, diff", "    x[0, 0] += 1.0\n    return total, diff"))
    answer = verify(operator.root, as_json=False)
    row = next(line for line in answer.stdout.splitlines() if line.startswith("tile  "))
    assert answer.code == 1 and row.split()[-1] == "mutated_input", row


def test_what_sim_cannot_show_is_one_sentence(passed: str) -> None:
    drawn = [line for line in passed.splitlines() if line.startswith("Not shown: larger shapes")]
    assert [line.endswith("axes that are not dynamic.") for line in drawn] == [True], passed
    lines = [line for line in passed.splitlines() if line.startswith("sim judges")]
    assert len(lines) == 1 and "races" in lines[0] and "device's own rounding" in lines[0], passed
    assert "next:" not in passed


def test_a_failure_ends_with_the_next_command(failed: tuple[OpWorkspace, list[str]]) -> None:
    ws, lines = failed
    step = next(line for line in lines if line.startswith("next: "))
    assert f"pypto-op debug precision-compare {ws.root} --case tile " in step and lines.index(step) == len(lines) - 2


def test_what_does_not_load_is_told_once_and_leads_to_itself(operator: OpWorkspace) -> None:
    operator.impl.write_text("import pypto\n")
    text = verify(operator.root, as_json=False).stdout
    assert text.count("ragged, fresh_N: the implementation has no such wrapper") == 1
    assert f"next: pypto-op verify {operator.root}  (once {operator.impl.name} is mended" in text


def test_what_does_not_parse_is_told_with_its_line_and_is_no_fault_of_a_run(operator: OpWorkspace) -> None:
    operator.impl.write_text("import pypto\n\ndef sum_diff_wrapper(x, y:\n")
    text = verify(operator.root, as_json=False).stdout
    assert "category: structural" in text and f"does not parse: {operator.impl.name}:3: SyntaxError" in text
    assert f"next: pypto-op verify {operator.root}  (once {operator.impl.name} is mended: nothing ran)" in text


def test_where_many_cases_fail_alike_their_reason_is_one_line(tmp_path: Path) -> None:
    operator = place("sum_diff", tmp_path, cases=[{**CASES[0], "id": f"case_{number}"} for number in range(8)])
    operator.impl.write_text("import pypto\n")
    lines = verify(operator.root, as_json=False).stdout.splitlines()
    said = [line for line in lines if "the implementation has no such wrapper" in line and line.startswith("case_")]
    assert len(said) == 1 and said[0].startswith("case_1, case_2, case_3, case_4, 4 more: "), said


def test_a_verdict_without_a_run_names_no_pattern_of_runs(operator: OpWorkspace) -> None:
    operator.suite.write_text("")
    answer = verify(operator.root, as_json=False)
    assert answer.code == 2 and "category: structural" in answer.stdout and "fingerprint" not in answer.stdout


def test_a_dtype_that_an_older_suite_does_not_have_is_told(operator: OpWorkspace) -> None:
    text = operator.spec.read_text()
    operator.spec.write_text(text.replace("[float32, float16]", "[float32]"))
    assert "SPEC.md supports" not in verify(operator.root, as_json=False).stdout + command("check", operator.root).stdout
    operator.spec.write_text(text.replace("[float32, float16]", "[float32, float16, int8]"))
    answer = verify(operator.root, as_json=False)
    assert "\nNot shown: float16, int8, which SPEC.md supports and no case has" in answer.stdout, answer.stdout


def test_a_p0_shape_that_no_case_has_is_told(operator: OpWorkspace) -> None:
    """A suite made before SPEC.md got a further P0 shape passed `check`, and its verdict did not speak of the shape."""
    text = operator.spec.read_text()
    start, end = text.index("p0_shapes:"), text.index("tolerance:")
    met = ", ".join(f"{axis}: {size}" for axis, size in CASES[0]["shape"].items())
    for shapes, told in ((f"[{{{met}}}]", False), (f"[{{{met}}}, {{N: 77, D: 48}}]", True)):
        operator.spec.write_text(text[:start] + f"p0_shapes: {shapes}\n" + text[end:])
        shown = verify(operator.root, as_json=False).stdout
        assert ("the P0 shape {'N': 77, 'D': 48}" in shown) is told, shown


def test_a_crash_leads_to_diagnose(operator: OpWorkspace) -> None:
    operator.impl.write_text(operator.impl.read_text().replace("    return total, diff", "    raise KeyError('x')"))
    text = verify(operator.root, as_json=False).stdout
    assert f"next: pypto-op diagnose --log {operator.report} --kernel {operator.impl}" in text


def test_the_verifiers_answer_is_printed(passed: str, failed: tuple[OpWorkspace, list[str]]) -> None:
    assert "E2E passed for sum_diff. Comparison of the whole operator PASS (L2/L3/L4).\nmodes: sim PASS; cases 3/3;" in passed
    told = "\n".join(failed[1])
    assert "E2E FAILED for sum_diff. failure_category: precision.\ndivergence_fingerprint: null (it takes two modes)" in told
    assert "first case tile, sim: values outside the tolerance" in told
    assert failed[1][-1].startswith("FAIL  sum_diff: 0 of 3 cases passed")


def imported(path: Path) -> ModuleType:
    """Return a module as an importer of the runner makes one, without running the kernel's imports here."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    return importlib.util.module_from_spec(spec)


def test_run_modes_takes_an_imported_module(tmp_path: Path) -> None:
    ws = place("chain", tmp_path)
    case = {"id": "one", "level": "L2", "shape": {"N": 21, "D": 32}, "dtype": {"default": "float32"}, "precision": True}
    found = run_modes(imported(ws.module_impl(1)), case, ["sim"])
    assert found["sim"]["status"] == "PASS" and found["sim"]["per_tensor"]
    stranger = tmp_path / "stranger.py"
    stranger.write_text("")
    for module in (imported(stranger), ModuleType("nowhere")):
        with pytest.raises(ContractError, match="no implementation of an operator"):
            run_modes(module, case, ["sim"])
