"""The verifier's verdict, in words and as a record."""

import copy
from pathlib import Path

import pytest

from pypto_op.documents import verdict
from pypto_op.documents.reading import read_yaml

FIXTURES = Path(__file__).resolve().parents[1] / "schemas" / "fixtures"
SHA = "0" * 64


def fixture(name, number=0):
    return copy.deepcopy(read_yaml(FIXTURES / f"{name}.yaml")["valid"][number])


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
