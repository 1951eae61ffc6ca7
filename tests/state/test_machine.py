"""The pure machine, step by step."""

import copy
import json

import pytest
from tests.state.conftest import refused

from pypto_op.documents import schema
from pypto_op.state import gates
from pypto_op.state.arguments import parse
from pypto_op.state.conditions import CONDITIONS
from pypto_op.state.effects import EFFECTS
from pypto_op.state.machine import action_row, legal_actions, step
from pypto_op.vocabulary import Role
from pypto_op.workflow import TABLE, workflow

# -- the table --------------------------------------------------------------------------------------------


def test_the_table_keeps_its_schema():
    schema.check(json.loads(TABLE.read_text()), "workflow", file=TABLE)


def test_every_name_in_the_table_has_its_code_and_all_code_is_named():
    rows = workflow().actions.values()
    assert set(EFFECTS) == {row.name for row in rows}
    assert {name for row in rows for name in row.requires} == set(CONDITIONS)
    assert {name for row in rows for name in row.gates} == set(gates.GATES)


def test_every_action_that_changes_something_checks_the_frozen_files():
    spared = {"init", "unblock", "adopt"}
    for row in workflow().actions.values():
        assert row.name in spared or row.gates[0].startswith("frozen"), row.name


def test_every_role_but_the_orchestrator_can_be_dispatched():
    alone = {str(Role.ORCHESTRATOR), str(Role.TRITON_KERNELGEN)}
    assert set(workflow().dispatch) == {str(role) for role in Role} - alone


# -- the two paths ----------------------------------------------------------------------------------------


def test_the_single_path_runs_to_its_end(driver):
    one = driver(n=1).reach(7)
    one.do("complete_stage", stage=7)
    assert set(one.state["stage_status"].values()) == {"completed"}
    assert one.phase(1)["status"] == "verified"


def test_the_staged_path_runs_to_its_end(driver):
    three = driver(n=3).reach(7)
    three.do("complete_stage", stage=7)
    assert set(three.state["stage_status"].values()) == {"completed"}
    assert [three.phase(k)["status"] for k in (1, 2, 3)] == ["verified"] * 3


def test_an_operator_may_end_before_tuning(driver):
    one = driver(n=1)
    one.do("init", max_stage=6)
    for stage in (1, 2, 3):
        one.do("complete_stage", stage=stage)
    one.do("freeze_plan")
    one.do("complete_stage", stage=4)
    one.construct()
    one.do("complete_stage", stage=5)
    one.do("complete_stage", stage=6)
    assert "7" not in one.state["stage_status"] and one.state["current_stage"] == 6
    assert "impl_py" in one.state["artifact_hashes"], "nobody tunes it, so it stays frozen"


def test_a_step_leaves_the_state_before_it_alone(driver):
    one = driver().reach(5)
    before = copy.deepcopy(one.state)
    old = one.state
    one.do("start_phase", phase="M1")
    assert old == before and one.state != before


def test_a_refusal_of_a_gate_is_a_refusal_of_the_step(driver):
    one = driver().reach(2)
    facts = one.facts("complete_stage", {"stage": 2})
    facts["refusals"] = [{"problem": "is missing", "file": "x_golden.py", "remedy": "write it"}]
    refused(lambda: step(one.state, "complete_stage", {"stage": 2}, facts), "x_golden.py: is missing")


# -- arguments --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stage", [0, 8, -1, 1.9, True, "1.0", "one", "", "१", "1" * 5000, None, [], {}])
def test_a_stage_is_a_whole_number_from_1_to_7(stage):
    refused(lambda: parse(action_row("start_stage"), {"stage": stage}))


@pytest.mark.parametrize("phase", ["M0", "M-1", "", "m1", "M1.0", "M99999", 1.5, True, "M1;rm -rf /", "../M1", "M" * 300])
def test_a_phase_is_m_and_a_number(phase):
    refused(lambda: parse(action_row("start_phase"), {"phase": phase}), "phase")


@pytest.mark.parametrize("phase", ["M3", "M_3", 3, "3"])
def test_a_phase_may_be_written_in_several_ways(phase):
    assert parse(action_row("start_phase"), {"phase": phase}) == {"phase": "M3"}


def test_what_an_action_does_not_take_is_refused_not_ignored():
    refused(lambda: parse(action_row("start_phase"), {"phase": "M1", "stage": 5}), "does not take stage")
    refused(lambda: parse(action_row("fail_phase"), {"phase": "M1"}), "needs failure_category")


@pytest.mark.parametrize("reason", ["", "   ", "a\x1b[2Jb", "x" * 2001, 5])
def test_a_reason_is_one_printable_sentence(reason):
    refused(lambda: parse(action_row("fail_stage"), {"stage": 1, "reason": reason}), "reason")


def test_the_seeds_second_spelling_of_structural_is_accepted():
    args = parse(action_row("fail_phase"), {"phase": "M1", "failure_category": "structure"})
    assert args["failure_category"] == "structural"


@pytest.mark.parametrize("action", ["", "finish", "complete_stage ", "x" * 500])
def test_an_unknown_action_is_named_and_the_known_ones_are_listed(action):
    refused(lambda: action_row(action), "unknown action", "complete_phase")


# -- stages -----------------------------------------------------------------------------------------------


def test_nothing_goes_before_init(driver):
    refused(lambda: driver().do("start_stage", stage=1), "init")


def test_init_begins_at_stage_1_and_only_once(driver):
    refused(lambda: driver().do("init", stage=2), "stage 1")
    one = driver().reach(2)
    refused(lambda: one.do("init"), "stage 2 is in progress")


def test_a_failed_operator_is_started_anew_by_a_person_only(driver):
    one = driver().reach(2)
    one.do("fail_stage", stage=2, reason="no golden")
    refused(lambda: one.do("init"), "forget its count")
    one.by = "person"
    assert one.do("init")["stage_retry_count"]["2"] == 0


def test_a_finished_operator_may_begin_a_new_run_and_attempt_ids_go_on(driver):
    one = driver().reach(7)
    one.do("complete_stage", stage=7)
    issued = one.state["attempts_issued"]
    one.do("init")
    assert one.state["attempts_issued"] == issued > 0
    assert one.state["artifact_hashes"] == {} and one.state["plan"] is None


def test_five_failures_block_a_stage(driver):
    one = driver().reach(3)
    for count in range(1, 6):
        one.do("fail_stage", stage=3, reason="again")
        assert one.state["stage_retry_count"]["3"] == count
        if count < 5:
            one.do("start_stage", stage=3)
    assert one.state["stage_status"]["3"] == "blocked"
    refused(lambda: one.do("start_stage", stage=3), "blocked after 5 failures")
    one.do("rollback_to_stage", target_stage=2, reason="the golden was wrong")
    assert one.state["stage_status"]["2"] == "in_progress"
    one.do("complete_stage", stage=2)
    assert one.state["stage_status"]["3"] == "in_progress"


def test_five_rollbacks_block_the_target(driver):
    one = driver().reach(2)
    for _ in range(5):
        one.do("rollback_to_stage", target_stage=1, reason="again")
        if one.state["stage_status"]["1"] == "in_progress":
            one.do("complete_stage", stage=1)
    assert one.state["stage_status"]["1"] == "blocked"
    assert legal_actions(one.state) == []


def test_a_person_unblocks_and_nobody_else(driver):
    one = driver().reach(2)
    for _ in range(5):
        one.do("fail_stage", stage=2)
        if one.state["stage_status"]["2"] == "failed":
            one.do("start_stage", stage=2)
    refused(lambda: one.do("unblock", stage=2, reason="please"), "only a person")
    one.by = "person"
    refused(lambda: one.do("unblock", stage=1, reason="x"), "not blocked")
    refused(lambda: one.do("unblock", reason="x"), "a stage or a phase")
    one.do("unblock", stage=2, reason="the golden is here now")
    one.by = "orchestrator"
    one.do("start_stage", stage=2)
    assert one.state["stage_status"]["2"] == "in_progress" and one.state["stage_retry_count"]["2"] == 0


def test_failing_the_design_stage_thaws_the_plan(driver):
    one = driver(n=2).reach(4)
    one.do("freeze_plan")
    refused(lambda: one.do("freeze_plan"), "frozen with N = 2")
    one.do("fail_stage", stage=4, reason="wrong boundaries")
    assert one.state["plan"] is None and one.state["stage5_phases"]["phase_status"] == {}
    one.do("start_stage", stage=4)
    one.n = 3
    assert one.do("freeze_plan")["plan"]["module_count"] == 3


# -- dispatch ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "stage, role",
    list(enumerate(["planner", "mathematician", "architect", "designer", None, "verifier", "optimizer"], 1)),
)
def test_each_stage_has_its_roles(driver, stage, role):
    one = driver().reach(stage)
    for other in workflow().dispatch:
        allowed = stage in workflow().dispatch[other].stages and not other.endswith("coder")
        if allowed:
            one.do("dispatch", role=other)
        else:
            refused(lambda other=other: one.do("dispatch", role=other))
    assert role is None or stage in workflow().dispatch[f"pypto-op-{role}"].stages


def test_a_role_is_sent_to_a_phase_only_when_it_has_work_there(driver):
    one = driver().reach(5)
    refused(lambda: one.do("dispatch", role="coder"), "for one phase")
    refused(lambda: one.do("dispatch", role="coder", phase="M1"), "which is pending")
    one.do("start_phase", phase="M1")
    one.do("dispatch", role="coder", phase="M1")
    refused(lambda: one.do("dispatch", role="verifier", phase="M1"), "in_progress")
    refused(lambda: one.do("dispatch", role="debugger", phase="M1"), "in_progress")
    attempt = one.submit(1)
    one.do("dispatch", role="verifier", phase="M1")
    refused(lambda: one.do("dispatch", role="coder", phase="M1"), "awaiting_verify")
    one.do("record_verdict", attempt=attempt, verdict="FAIL")
    one.do("dispatch", role="debugger", phase="M1")
    one.do("dispatch", role="coder", phase="M1")
    refused(lambda: one.do("dispatch", role="optimizer"), "no work in stage 5")
    refused(lambda: one.do("dispatch", role="orchestrator"), "not dispatched")


def test_the_next_actions_are_named(driver):
    one = driver()
    assert legal_actions(None) == ["init"]
    one.reach(4)
    assert "freeze_plan" in legal_actions(one.state)
    assert not any(text.startswith("complete_stage") for text in legal_actions(one.state))
    assert "submit_design" in legal_actions(one.state) and "submit_design" not in legal_actions(one.state, "submit_design")
    one.do("freeze_plan")
    assert "submit_design" not in legal_actions(one.state), "it had the same gates"
    one.do("complete_stage", stage=4)
    attempt = one.submit(1)
    assert {f"record_verdict --attempt {attempt}", "complete_phase --phase M1"} <= set(legal_actions(one.state))


# -- the schema of the state file -------------------------------------------------------------------------

DAMAGE = {
    "another version": lambda s: s.update(schema_version="2.0"),
    "a key nobody knows": lambda s: s.update(extra=1),
    "a key is missing": lambda s: s.pop("run_id"),
    "a stage beyond the last": lambda s: s["stage_status"].update({"8": "pending"}),
    "a status nobody knows": lambda s: s["stage_status"].update({"1": "done"}),
    "a phase M0": lambda s: s["stage5_phases"]["phase_status"].update(M0=s["stage5_phases"]["phase_status"]["M1"]),
    "a negative count": lambda s: s["stage5_phases"]["phase_status"]["M1"].update(cycles=-1),
    "a category nobody knows": lambda s: s["stage5_phases"]["phase_status"]["M1"].update(failure_category="bad"),
    "a hash that is none": lambda s: s["artifact_hashes"]["spec_md"].update(sha256="abc"),
    "an absolute path": lambda s: s["artifact_hashes"]["spec_md"].update(path="/etc/passwd"),
    "a single plan of two": lambda s: s["plan"].update(module_count=2),
    "a rollback without a reason": lambda s: s["rollback_history"].append({"from_stage": 5, "to_stage": 1}),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_the_schema_of_the_state_file_refuses(driver, damage):
    state = copy.deepcopy(driver().reach(5).state)
    document = {**state, "journal": {"sequence": 1, "head": "0" * 64}, "seal": "0" * 64}
    assert schema.findings(document, "state") == []
    damage(document)
    assert schema.findings(document, "state") != []
