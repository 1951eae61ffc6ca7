"""Records that tools write: contradictions, the verifier's verdict, the snapshot manifest."""

import copy
import json
from pathlib import Path

import pytest

from pypto_op.documents import records, verdict
from pypto_op.documents.reading import read_yaml
from pypto_op.errors import ContractError

FIXTURES = Path(__file__).resolve().parents[1] / "schemas" / "fixtures"
SHA = "0" * 64


def fixture(name, number=0):
    return copy.deepcopy(read_yaml(FIXTURES / f"{name}.yaml")["valid"][number])


def write(tmp_path, data):
    path = tmp_path / "record.json"
    path.write_text(json.dumps(data))
    return path


@pytest.mark.parametrize("name", ["evaluation_report", "perf_result", "verify_result", "verdict", "plan"])
def test_records_are_loaded_through_their_schema(tmp_path, name):
    data = fixture(name)
    assert records.load(write(tmp_path, data), name) == data
    data["unheard_of"] = 1
    with pytest.raises(ContractError, match="unheard_of"):
        records.load(write(tmp_path, data), name)


@pytest.mark.parametrize(
    ("name", "changes", "words"),
    [
        ("verify_result", {"passed_cases": 2}, "total_cases: is 2, but 2 passed and 1 failed"),
        ("verify_result", {"failures": []}, "failures: lists 0, failed_cases is 1"),
        ("verify_result", {"status": "PASS"}, "status: is PASS without every case passed"),
        ("perf_result", {"passed_cases": 0}, "total_cases: is 1"),
        ("evaluation_report", {"cases_total": 2}, "cases_total: is 2, checks has 1"),
        ("evaluation_report", {"cases_passed": 1}, "cases_passed: is 1, 0 of the checks passed"),
        ("evaluation_report", {"status": "PASS"}, "is PASS with 0 of 1 cases passed"),
    ],
)
def test_a_record_that_contradicts_itself_is_refused(tmp_path, name, changes, words):
    with pytest.raises(ContractError) as caught:
        records.load(write(tmp_path, fixture(name) | changes), name)
    assert words in caught.value.one_line()


def test_zero_of_zero_is_no_pass(tmp_path):
    empty = {"op_name": "x", "total_cases": 0, "passed_cases": 0, "failed_cases": 0, "failures": [], "status": "PASS"}
    with pytest.raises(ContractError, match="status: is PASS"):
        records.load(write(tmp_path, empty), "verify_result")


def judged(**changes):
    report = fixture("evaluation_report") | changes
    return verdict.from_report(report, report_file="eval/evaluation_report.json", report_sha256=SHA, phase=1)


def test_a_failing_report_becomes_a_routed_verdict():
    found = judged()
    assert (found["verdict"], found["phase"], found["failure_category"]) == ("FAIL", "M1", "precision")
    text = verdict.sentence(found)
    assert text.startswith("Phase M1 FAILED for M1. failure_category: precision.")
    assert "Failing file: rmsnorm_impl.py" in text and text.endswith("Dispatch @pypto-op-debugger.")


@pytest.mark.parametrize(
    ("enough", "first"),
    [
        (True, "Phase M1 passed for M1. Direct per-phase comparison PARTIAL at --up-to-module 1 (L2). 3 of 4 were not judged."),
        (False, "A part of M1 passed; that is no verdict on it. Direct per-phase comparison PARTIAL"),
    ],
)
def test_a_part_is_told_as_one(enough, first):
    report = fixture("evaluation_report") | {"status": "PARTIAL", "first_failure": None}
    found = verdict.from_report(
        report,
        report_file="eval/evaluation_report.json",
        report_sha256=SHA,
        phase=1,
        left_out="3 of 4 were not judged",
        covers_phase=enough,
    )
    assert found["verdict"] == "PARTIAL"
    assert verdict.sentence(found).startswith(first)


def test_a_broken_contract_is_a_rejection():
    found = judged(status="ERROR", error={"kind": "contract", "message": "eval/test_inputs.py: case a: x is all zero"})
    assert verdict.sentence(found).startswith("REJECTED: eval/test_inputs.py: case a: x is all zero\nEvidence: ")


def test_a_passing_report_becomes_the_seeds_sentence():
    found = judged(status="PASS", first_failure=None)
    assert "failure_category" not in found
    first = verdict.sentence(found).splitlines()[0]
    assert first == "Phase M1 passed for M1. Direct per-phase comparison PASS at --up-to-module 1 (L2)."


def test_infrastructure_is_a_verdict_of_its_own():
    error = {"kind": "infra", "message": "no device answers"}
    found = judged(status="ERROR", error=error, modes={"npu": {"numeric": False, "caveats": [], "reason": "no npu"}})
    assert found["verdict"] == "BLOCKED" and found["blocked"]["tried"] == ["npu: no npu"]
    assert verdict.sentence(found).startswith("BLOCKED - infra. Tried: npu: no npu.")


def test_an_error_of_the_candidate_is_a_failure():
    report = {"status": "ERROR", "error": {"kind": "candidate", "message": "no wrapper"}, "first_failure": None, "checks": []}
    found = judged(**report)
    assert (found["verdict"], found["failure_category"]) == ("FAIL", "other") and "levels" not in found
