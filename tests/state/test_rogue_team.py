"""A rogue team: scripted ways to get a kernel accepted that should not be. Every one must end in a refusal.

A cheat prepares its fraud and returns the last step, which must be refused in one line and leave state and journal
byte for byte as they were. Where a cheat needs the judge to see through it, the real judge runs.
"""

import json
import os
import re
import shutil

import pytest
from tests.state.lab import wrong
from tests.state.operators import MODULE_GOLDEN

from pypto_op.errors import ContractError, InfraError
from pypto_op.hashing import sha256_json
from pypto_op.locks import Lock
from pypto_op.proof import evidence
from pypto_op.proof.key import KEY_ENV
from pypto_op.state import deliverables, service
from pypto_op.state.roles import issue
from pypto_op.state.service import transition

pytestmark = [pytest.mark.sim, pytest.mark.slow]

CHEATS = []

THE_JUDGE = deliverables.judge


def cheat(snapshot, words):
    """Register a cheat: it begins at `snapshot`, and the refusal of its last step must match `words`."""

    def register(function):
        CHEATS.append(pytest.param(snapshot, words, function, id=function.__name__))
        return function

    return register


@pytest.mark.parametrize("snapshot, words, fraud", CHEATS)
def test_cheat(clone, lab, snapshot, words, fraud, monkeypatch):
    ws = clone(snapshot)
    fraud.context = {"clone": clone, "monkeypatch": monkeypatch}
    monkeypatch.setattr(deliverables, "judge", lambda ws, demand: judged_once(lab, ws, demand))
    last_step = fraud(ws)
    before = [path.read_bytes() if path.exists() else None for path in (ws.state, ws.journal)]
    with pytest.raises((ContractError, InfraError)) as caught:
        last_step()
    text = caught.value.one_line()
    assert re.search(words, text), text
    assert [path.read_bytes() if path.exists() else None for path in (ws.state, ws.journal)] == before


def judged_once(lab, ws, demand):
    """Ask the real judge, but only once about the same bytes: many cheats end with the same wrong kernel."""
    key = sha256_json([evidence.file_hashes(ws, demand.phase), repr(demand)])
    kept = lab.folder / f"verdict_{key}.json"
    with Lock(kept.with_suffix(".lock"), seconds=None):
        if not kept.exists():
            kept.write_text(json.dumps(THE_JUDGE(ws, demand)))
    return json.loads(kept.read_text())


def test_there_are_at_least_thirty():
    assert len(CHEATS) >= 30


def step(ws, action, **given):
    return lambda: transition(ws.root, action, **given)


def edit(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def attempt_of(ws):
    return service.status(ws.root)["phases"]["M1"]["attempt"]


def resubmit(ws, source):
    """Hand a changed kernel to the judge."""
    ws.impl.write_text(source)
    transition(ws.root, "submit_for_verify", phase="M1")


# -- planning, golden, design -----------------------------------------------------------------------------


@cheat("stage1", "SPEC.md: is missing")
def complete_planning_with_nothing(ws):
    ws.spec.unlink()
    return step(ws, "complete_stage", stage=1)


@cheat("stage1", "SPEC.md")
def a_spec_that_says_nothing(ws):
    ws.spec.write_text("---\n---\n# a spec\n")
    return step(ws, "complete_stage", stage=1)


@cheat("stage1", "op_name: 'other' is not the name of the directory")
def the_spec_of_another_operator(ws):
    edit(ws.spec, "op_name: square_add", "op_name: other")
    return step(ws, "complete_stage", stage=1)


@cheat("stage1", "workaround|API_REPORT")
def an_unsupported_step_without_a_workaround(ws):
    edit(ws.api_report, "| direct | yes | |", "| unsupported | no | |")
    return step(ws, "complete_stage", stage=1)


@cheat("stage2", "OL15")
def a_golden_that_calls_the_kernel_s_framework(ws):
    ws.golden.write_text("import pypto\n" + ws.golden.read_text())
    return step(ws, "complete_stage", stage=2)


@cheat("stage4", r"modules: are 2; DESIGN.md 0.3 decides on 1")
def one_module_in_the_design_and_two_in_the_contract(ws):
    other = fraud_clone(one_module_in_the_design_and_two_in_the_contract, "staged4")
    text = other.interfaces.read_text().replace("op: chain", "op: square_add")
    ws.interfaces.write_text(text)
    return step(ws, "freeze_plan")


@cheat("stage4", "no plan is frozen")
def end_the_design_without_a_plan(ws):
    return step(ws, "complete_stage", stage=4)


@cheat("staged4", "adversarial_suite.json: cases: level L2")
def a_suite_of_easy_cases_only(ws):
    suite = json.loads(ws.suite.read_text())
    suite["cases"] = [case for case in suite["cases"] if case["level"] == "L1"]
    ws.suite.write_text(json.dumps(suite))
    transition(ws.root, "freeze_plan")
    return step(ws, "complete_stage", stage=4)


@cheat("staged4", "adversarial_suite.json: is missing")
def the_staged_path_without_a_suite(ws):
    ws.suite.unlink()
    transition(ws.root, "freeze_plan")
    return step(ws, "complete_stage", stage=4)


def fraud_clone(function, name):
    return function.context["clone"](name)


# -- frozen files -----------------------------------------------------------------------------------------


@cheat("begun", "SPEC.md: was changed since stage 1 froze it")
def loosen_the_tolerance_later(ws):
    edit(ws.spec, "atol: 1.0e-06, rtol: 1.0e-05", "atol: 1.0e+06, rtol: 1.0e+05")
    return step(ws, "submit_for_verify", phase="M1")


@cheat("failed", "square_add_golden.py: was changed since stage 2 froze it")
def bend_the_golden_to_the_wrong_kernel(ws):
    edit(ws.golden, "x * x", "x * x * 1.01")
    return step(ws, "complete_phase", phase="M1")


@cheat("failed", "adversarial_suite.json: was changed since stage 4 froze it")
def drop_the_failing_cases(ws):
    suite = json.loads(ws.suite.read_text())
    suite["cases"] = suite["cases"][:2]
    ws.suite.write_text(json.dumps(suite))
    return step(ws, "complete_phase", phase="M1")


@cheat("failed", "adversarial_suite.json: is missing since stage 4 froze it")
def delete_the_suite(ws):
    ws.suite.unlink()
    return step(ws, "complete_phase", phase="M1")


@cheat("failed", "test_inputs.py: was changed since stage 4 froze it")
def feed_zeros(ws):
    edit(ws.test_inputs, "torch.randn(shape", "0 * torch.randn(shape")
    return step(ws, "complete_phase", phase="M1")


@cheat("module1", "chain_module1_golden.py: was changed since M1 was verified")
def change_a_verified_module_s_golden(ws):
    edit(ws.module_golden(1), "x * x", "x * x * 1.0")
    return step(ws, "start_phase", phase="M2")


@cheat("module1", "chain_module1_impl.py: is missing since M1 was verified")
def remove_a_verified_module(ws):
    ws.module_impl(1).unlink()
    return step(ws, "start_phase", phase="M2")


@cheat("begun", "orchestrator_plan.json: was changed since freeze_plan")
def edit_the_plan_file(ws):
    edit(ws.plan, '"module_count": 1', '"module_count": 0')
    return step(ws, "submit_for_verify", phase="M1")


# -- verdicts ---------------------------------------------------------------------------------------------


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


# -- kernels ----------------------------------------------------------------------------------------------


@cheat("begun", "OL62|OL51|OL60|PX")
def let_torch_do_the_work(ws):
    source = ws.impl.read_text().replace("    return out\n", "    return x * x + y\n")
    ws.impl.write_text(source)
    return step(ws, "submit_for_verify", phase="M1")


@cheat("begun", "OL16")
def let_the_golden_do_the_work(ws):
    source = ws.impl.read_text().replace("import torch\n", "import torch\nfrom square_add_golden import square_add_golden\n", 1)
    ws.impl.write_text(source.replace("    return out\n", "    return square_add_golden(x, y)\n"))
    return step(ws, "submit_for_verify", phase="M1")


@cheat("begun", "OL54")
def submit_without_a_self_review(ws):
    ws.memory.write_text("# memory\n\n## Experience Preflight\n\n- [x] nothing\n")
    return step(ws, "submit_for_verify", phase="M1")


# -- the staged path --------------------------------------------------------------------------------------


@cheat("module1", "M1 is verified and frozen")
def begin_a_verified_module_again(ws):
    return step(ws, "start_phase", phase="M1")


@cheat("module1", "not every phase is verified: M2 is pending")
def leave_a_module_out(ws):
    return step(ws, "complete_stage", stage=5)


@cheat("module1", "the function chain_square differs from the one that was verified in M1")
def change_a_verified_module_inside_the_next_file(ws):
    transition(ws.root, "start_phase", phase="M2")
    other = fraud_clone(change_a_verified_module_inside_the_next_file, "module2")
    for path in (other.module_impl(2), other.module_golden(2), other.module_test(2)):
        shutil.copyfile(path, ws.modules_dir / path.name)
    shutil.copyfile(other.memory, ws.memory)
    edit(ws.module_impl(2), "return tile * tile", "return tile * tile * 1.0")
    return step(ws, "submit_for_verify", phase="M2")


@cheat("module1", "the composition does not reproduce the golden")
def a_module_golden_that_fits_a_wrong_kernel(ws):
    """Kernel and golden of M2 agree with one another, and both are wrong; the composition tells."""
    other = fraud_clone(a_module_golden_that_fits_a_wrong_kernel, "module2")
    transition(ws.root, "start_phase", phase="M2")
    for path in (other.module_impl(2), other.module_test(2)):
        shutil.copyfile(path, ws.modules_dir / path.name)
    shutil.copyfile(other.memory, ws.memory)
    edit(ws.module_impl(2), "return squared + pypto", "return squared + 1.5 * pypto")
    ws.module_golden(2).write_text(MODULE_GOLDEN.format(name="chain_module12", k=2, value="x * x + 1.5 * y"))
    transition(ws.root, "submit_for_verify", phase="M2")
    assert transition(ws.root, "complete_phase", phase="M2")["phase_status"] == "verified"
    return step(ws, "record_composition")


@cheat("integrated", "the composition is not recorded")
def skip_the_composition(ws):
    return step(ws, "record_integration")


@cheat("composed", "the integration is not recorded")
def skip_the_integration(ws):
    return step(ws, "complete_stage", stage=5)


@cheat("composed", "the verified function chain_add of M2 is missing")
def integrate_another_kernel(ws):
    edit(ws.impl, "chain_add", "chain_plus")
    return step(ws, "record_integration")


# -- state, journal, roles --------------------------------------------------------------------------------


@cheat("failed", "changed by hand")
def write_verified_into_the_state(ws):
    state = json.loads(ws.state.read_text())
    state["stage5_phases"]["phase_status"]["M1"]["status"] = "verified"
    ws.state.write_text(json.dumps(state))
    return step(ws, "complete_stage", stage=5)


@cheat("failed", "does not reach the state|does not follow|no journal line|changed by hand")
def forge_the_journal(ws):
    text = ws.journal.read_text().splitlines(keepends=True)
    ws.journal.write_text("".join(text[:-1]))
    return step(ws, "complete_phase", phase="M1")


@cheat("failed", "set back")
def set_the_state_back_to_lose_a_cycle(ws):
    saved = {path: path.read_bytes() for path in (ws.state, ws.journal)}
    transition(ws.root, "fail_phase", phase="M1", failure_category="precision")
    for path, data in saved.items():
        path.write_bytes(data)
    return step(ws, "fail_phase", phase="M1", failure_category="precision")


@cheat("failed", "stage 5 is in progress")
def begin_anew_to_lose_the_counts(ws):
    return step(ws, "init")


@cheat("failed", "only a person may call unblock")
def unblock_oneself(ws):
    return step(ws, "unblock", phase="M1", reason="we need it")


@cheat("passed", "pypto-op-coder may not call complete_phase")
def the_coder_completes_its_own_phase(ws):
    run = json.loads(ws.state.read_text())["run_id"]
    return step(ws, "complete_phase", phase="M1", token=issue("pypto-op-coder", run, phase="M1"))


@cheat("passed", "pypto-op-verifier may not call complete_phase")
def the_verifier_says_who_it_is_and_completes(ws):
    return step(ws, "complete_phase", phase="M1", declared="pypto-op-verifier")


@cheat("stage6", "the state.*other|belongs to the operator|is missing|No such")
def copy_a_finished_operator_s_state(ws):
    done = fraud_clone(copy_a_finished_operator_s_state, "staged7")
    for path in (done.state, done.journal, done.plan):
        shutil.copyfile(path, ws.root / path.name)
    return step(ws, "complete_stage", stage=7)


def account_of(ws, key=None):
    from tests.state.lab import account

    return account(key or ws.root.parent.parent / "account" / "seal.key")
