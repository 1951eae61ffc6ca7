"""Where no log speaks, `pypto-op diagnose` says what does: wrong numbers are triage's."""

from __future__ import annotations

import json
from pathlib import Path

from tests.calling import command

from pypto_op.workspace import OpWorkspace


def _operator(folder: Path, category: str) -> OpWorkspace:
    (folder / "custom" / "op" / "eval").mkdir(parents=True)
    ws = OpWorkspace.at(folder / "custom" / "op")
    ws.report.write_text(json.dumps({"first_failure": {"case_id": "L2_x", "failure_category": category}}))
    return ws


def test_wrong_numbers_are_sent_to_triage(tmp_path: Path) -> None:
    ws = _operator(tmp_path, "precision")
    for given in (ws.root, ws.report):
        answer = command("diagnose", given)
        assert answer.code == 3
        assert answer.stderr.count(f"`pypto-op triage {ws.root}`") == 1 and "case L2_x" in answer.stderr
    notes = command("diagnose", ws.root, "--json").report["notes"]
    assert len([note for note in notes if "pypto-op triage" in note]) == 1


def test_other_failures_and_plain_texts_are_not(tmp_path: Path) -> None:
    ws = _operator(tmp_path, "runtime")
    for given in (ws.root, "nothing that anybody knows"):
        assert f"triage {tmp_path}" not in command("diagnose", given).stderr, "the remedy names no operator"


def test_an_operator_that_passed_is_told_so(tmp_path: Path) -> None:
    ws = _operator(tmp_path, "precision")
    ws.report.write_text(json.dumps({"status": "PASS", "first_failure": None}))
    answer = command("diagnose", ws.root)
    assert answer.code == 3 and f"{ws.report}: the last verdict is PASS: nothing failed here" in answer.stderr
    assert "nothing known matches" not in answer.stderr and answer.stderr.count("\n") == 1, "one line, and no search that failed"


def test_the_verdicts_own_reason_is_the_cause_where_no_log_speaks(tmp_path: Path) -> None:
    ws = _operator(tmp_path, "structural")
    failure = {"case_id": "L2_x", "failure_category": "structural", "summary": "sim: wrong number of outputs (2, 1 expected)"}
    ws.report.write_text(json.dumps({"first_failure": failure}))
    said = command("diagnose", ws.root).stderr
    assert "wrong number of outputs (2, 1 expected); next: pypto-op triage" in said
    assert said.count("triage") == 1 and "give all that the run printed" not in said, "one remedy"


def test_what_a_run_that_raised_cannot_speak_of_is_dropped_as_triage_does(tmp_path: Path) -> None:
    """pypto prints a C++ stack for everything that it raises."""
    ws = _operator(tmp_path, "runtime")
    failure = {"case_id": "L2_x", "failure_category": "runtime", "reason": "exception", "summary": "Segmentation fault"}
    report = {"first_failure": failure, "checks": [], "stdout": "Segmentation fault (core dumped)", "error": None}
    ws.report.write_text(json.dumps(report))
    assert not command("diagnose", ws.root, "--json").report["hits"]
    failure["reason"] = "crashed"
    ws.report.write_text(json.dumps(report))
    assert command("diagnose", ws.root, "--json").report["hits"][0]["id"] == "host-segfault"


def test_a_package_of_any_name_that_is_missing_leads_to_the_environment() -> None:
    for name, known in (("scipy", "package-missing"), ("einops_npu", "package-missing"), ("torch_npu", "module-missing")):
        hit = command("diagnose", f"ModuleNotFoundError: No module named '{name}'", "--json").report["hits"][0]
        assert (hit["id"], hit["skill"]) == (known, "pypto-environment-setup")
