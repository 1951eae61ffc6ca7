"""A rogue team (`test_rogue_team`) that types, keeps, swaps or borrows verdicts: every step is refused."""

import json
import os
import shutil

import pytest
from tests.state.lab import wrong
from tests.state.rogue import Cheats, account_of, attempt_of, fraud_clone, refused, step

from pypto_op.proof import evidence
from pypto_op.proof.key import KEY_ENV
from pypto_op.state import deliverables
from pypto_op.state.service import transition

pytestmark = [pytest.mark.sim, pytest.mark.slow]

CHEATS = Cheats()
cheat = CHEATS.cheat


@cheat("begun", "M1 is in_progress; run submit_for_verify first")
def complete_without_submitting(ws):
    return step(ws, "complete_phase", phase="M1")


def passing_report_for(ws, other):
    """A PASS typed by hand: a real one, with the hashes of the bytes that lie here."""
    report = json.loads(other.report.read_text())
    report["hashes"] = {**report["hashes"], **evidence.file_hashes(ws)}
    return report


@cheat("failed", "the judge says FAIL")
def type_a_pass_by_hand(ws):
    other = fraud_clone(type_a_pass_by_hand, "passed")
    report = passing_report_for(ws, other)
    del report["seal"]
    with account_of(ws):
        ws.report.write_text(json.dumps(report))
    return step(ws, "complete_phase", phase="M1")


@cheat("failed", "the judge says FAIL")
def type_a_pass_by_hand_and_keep_a_real_seal(ws):
    other = fraud_clone(type_a_pass_by_hand_and_keep_a_real_seal, "passed")
    ws.report.write_text(json.dumps(passing_report_for(ws, other)))
    return step(ws, "complete_phase", phase="M1")


@cheat("failed", "the judge says FAIL")
def plant_a_typed_pass_among_the_kept_evidence(ws):
    other = fraud_clone(plant_a_typed_pass_among_the_kept_evidence, "passed")
    folder = evidence.evidence_dir(ws)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "aaaa.json").write_text(json.dumps(passing_report_for(ws, other)))
    return step(ws, "complete_phase", phase="M1")


@cheat("failed", "the judge says FAIL")
def turn_a_sealed_fail_into_a_pass(ws):
    report = json.loads(ws.report.read_text())
    report.update(status="PASS", first_failure=None, cases_passed=report["cases_total"])
    ws.report.write_text(json.dumps(report))
    return step(ws, "complete_phase", phase="M1")


@cheat("failed", "it is stale: impl changed since")
def show_the_pass_of_an_earlier_kernel(ws):
    other = fraud_clone(show_the_pass_of_an_earlier_kernel, "passed")
    shutil.copyfile(other.report, ws.report)
    return step(ws, "record_verdict", attempt=attempt_of(ws))


@cheat("awaiting", "is about the operator 'other'")
def show_the_pass_of_another_operator(ws):
    other = fraud_clone(show_the_pass_of_another_operator, "passed")
    report = json.loads(other.report.read_text())
    report["op_name"] = "other"
    ws.report.write_text(json.dumps(evidence.seal(report)))
    return step(ws, "record_verdict", attempt=attempt_of(ws))


@cheat("failed", "the verdict is not enough|the judge says FAIL")
def show_a_pass_of_the_cases_that_happen_to_pass(ws):
    """L1 compares no numbers, and nothing is wrong with the structure of the wrong kernel: sealed, and no verdict."""
    report = deliverables.run_judge(ws, ["--modes", "sim", "--levels", "L1"])
    assert report["status"] == "ERROR" and report["cases_passed"] and evidence.check_seal(report)
    return step(ws, "complete_phase", phase="M1")


@cheat("failed", "the judge says FAIL")
def show_a_pass_under_a_looser_policy(ws):
    loose = {"name": "allclose", "version": 1, "per_dtype": {"float32": {"atol": 1e6, "rtol": 1e6}}}
    from pypto_op.judge.cases.request import Request
    from pypto_op.judge.verify import verify_operator
    from pypto_op.vocabulary import Mode

    report = verify_operator(ws, Request(modes=[Mode.SIM], policy=loose))
    assert report["status"] == "ERROR" and evidence.check_seal(report)
    return step(ws, "complete_phase", phase="M1")


@cheat("failed", "the judge says FAIL")
def bring_a_key_of_one_s_own(ws):
    """A report that is sealed with another key is no evidence; and the state does not open under that key."""
    other = fraud_clone(bring_a_key_of_one_s_own, "passed")
    report = passing_report_for(ws, other)
    with account_of(ws, str(ws.root.parent / "own.key")):
        ws.report.write_text(json.dumps(evidence.seal(report)))
    return step(ws, "complete_phase", phase="M1")


@cheat("failed", "written under another account or key")
def bring_a_key_and_stay_with_it(ws):
    bring_a_key_and_stay_with_it.context["monkeypatch"].setenv(KEY_ENV, str(ws.root.parent / "own.key"))
    return step(ws, "complete_phase", phase="M1")


@cheat("failed", "the judge did not fail|the judge passed|M1 is|says FAIL")
def say_pass_in_words(ws):
    return step(ws, "complete_phase", phase="M1", attempt=attempt_of(ws))


@cheat("passed", "changed since attempt M1.1 was submitted")
def swap_the_kernel_after_the_verdict(ws):
    ws.impl.write_text(wrong(ws.impl.read_text()))
    return step(ws, "complete_phase", phase="M1")


@cheat("verified", "square_add_impl.py: was changed since M1 was verified")
def swap_the_kernel_after_its_verification(ws):
    ws.impl.write_text(wrong(ws.impl.read_text()))
    return step(ws, "complete_stage", stage=5)


@cheat("stage6", "square_add_impl.py: was changed")
def swap_the_kernel_before_the_final_run(ws):
    ws.impl.write_text(wrong(ws.impl.read_text()))
    return step(ws, "complete_stage", stage=6)


@cheat("stage7", "the judge says FAIL")
def tune_the_kernel_until_it_is_wrong(ws):
    ws.impl.write_text(wrong(ws.impl.read_text()))
    return step(ws, "complete_stage", stage=7)


@cheat("failed", "attempt M1.9 of M1 is stale")
def answer_an_attempt_that_never_was(ws):
    return step(ws, "record_verdict", attempt="M1.9")


@cheat("awaiting", "outside the operator's directory")
def bring_the_report_from_outside(ws):
    outside = ws.root.parent / "report.json"
    outside.write_text("{}")
    return step(ws, "record_verdict", attempt=attempt_of(ws), report=str(outside))


@cheat("awaiting", "not a regular file")
def a_pipe_in_the_place_of_the_report(ws):
    os.mkfifo(ws.report)
    return step(ws, "record_verdict", attempt=attempt_of(ws))


@cheat("stage4", "mode npu|machine could not judge|judge")
def ask_for_a_mode_that_this_machine_cannot_run(ws):
    """What cannot be judged is not passed: a SKIPPED mode closes no phase."""
    transition(ws.root, "freeze_plan", modes="npu")
    transition(ws.root, "complete_stage", stage=4)
    other = fraud_clone(ask_for_a_mode_that_this_machine_cannot_run, "begun")
    for path in (other.impl, other.readme, other.test, other.memory):
        shutil.copyfile(path, ws.root / path.name)
    transition(ws.root, "start_phase", phase="M1")
    transition(ws.root, "submit_for_verify", phase="M1")
    return step(ws, "complete_phase", phase="M1")


@pytest.mark.parametrize("snapshot, words, fraud", CHEATS)
def test_cheat(clone, lab, snapshot, words, fraud, monkeypatch):
    refused(clone, lab, snapshot, words, fraud, monkeypatch)
