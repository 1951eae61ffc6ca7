"""A rogue team: scripted ways to get a kernel accepted that should not be. Every one must end in a refusal.

A cheat prepares its fraud and returns the last step, which must be refused in one line and leave state and journal
byte for byte as they were. Where a cheat needs the judge to see through it, the real judge runs.
"""

import json
import shutil

import pytest
from tests.state.operators import MODULE_GOLDEN
from tests.state.rogue import Cheats, edit, fraud_clone, refused, step

from pypto_op.state.roles import issue
from pypto_op.state.service import transition

pytestmark = [pytest.mark.sim, pytest.mark.slow]

CHEATS = Cheats()
cheat = CHEATS.cheat


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


@pytest.mark.parametrize("snapshot, words, fraud", CHEATS)
def test_cheat(clone, lab, snapshot, words, fraud, monkeypatch):
    refused(clone, lab, snapshot, words, fraud, monkeypatch)


def test_there_are_at_least_thirty():
    assert len(CHEATS) >= 30
