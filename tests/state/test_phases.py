"""The pure machine, step by step: rollback, and the phases of construction."""

import pytest
from tests.state.conftest import refused

from pypto_op.state.machine import legal_actions

# -- rollback ---------------------------------------------------------------------------------------------


def test_rollback_drops_every_hash_of_the_reopened_stages(driver):
    for target in range(1, 7):
        one = driver(n=2).reach(7)
        one.do("rollback_to_stage", target_stage=target, reason="redo")
        kept = {row["stage"] for row in one.state["artifact_hashes"].values()}
        assert kept == set(range(1, min(target, 6))) - {6}, target
        assert one.state["current_stage"] == target
        assert (one.state["plan"] is None) == (target <= 4)
        assert all(one.state["stage_status"][str(s)] == "pending" for s in range(target + 1, 8))


def test_rollback_goes_back_only(driver):
    one = driver().reach(5)
    refused(lambda: one.do("rollback_to_stage", target_stage=5, reason="x"), "reopen_phase")
    refused(lambda: one.do("rollback_to_stage", target_stage=6, reason="x"), "not before")
    refused(lambda: one.do("rollback_to_stage", target_stage=2), "needs reason")
    refused(lambda: one.do("rollback_to_stage", target_stage=2, reason="x", failed_phase="M7"), "not in the plan")


def test_rollback_is_remembered(driver):
    one = driver(n=2).reach(5)
    one.do("start_phase", phase="M1")
    one.do("rollback_to_stage", target_stage=3, reason="too thick", failure_category="tile_shape")
    assert one.state["rollback_history"] == [
        {
            "from_stage": 5,
            "to_stage": 3,
            "reason": "too thick",
            "timestamp": one.state["last_updated"],
            "from_phase": "M1",
            "failure_category": "tile_shape",
        }
    ]


def test_rollback_to_construction_reopens_the_phases_and_keeps_their_counts(driver):
    two = driver(n=2).reach(5)
    attempt = two.submit(1)
    two.do("record_verdict", attempt=attempt, verdict="FAIL")
    two.verify(1)
    two.verify(2)
    assert "record_composition" in legal_actions(two.state)
    two.do("record_composition")
    assert legal_actions(two.state)[0] == "record_integration", "and no composition once more"
    two.do("record_integration")
    assert legal_actions(two.state)[0] == "complete_stage --stage 5"
    two.do("complete_stage", stage=5)
    two.do("rollback_to_stage", target_stage=5, reason="the final run failed")
    assert [two.phase(k)["status"] for k in (1, 2)] == ["pending", "pending"]
    assert two.phase(1)["cycles"] == 1
    assert two.state["composition"] is None and two.state["integration"] is None


# -- phases -----------------------------------------------------------------------------------------------


def test_phases_go_strictly_in_order(driver):
    three = driver(n=3).reach(5)
    refused(lambda: three.do("start_phase", phase="M3"), "M3 before M1")
    refused(lambda: three.do("start_phase", phase="M2"), "M2 before M1, which is pending")
    refused(lambda: three.do("start_phase", phase="M4"), "not in the plan", "M1..M3")
    three.submit(1)
    refused(lambda: three.do("start_phase", phase="M2"), "awaiting_verify")
    three.do("complete_phase", phase="M1")
    three.do("start_phase", phase="M2")
    refused(lambda: three.do("start_phase", phase="M2"), "already")


@pytest.mark.parametrize("verdict", ["FAIL", "ERROR"])
def test_a_failed_verdict_leads_to_debugging_and_counts(driver, verdict):
    one = driver().reach(5)
    attempt = one.submit(1)
    one.do("record_verdict", attempt=attempt, verdict=verdict, category="aicore")
    phase = one.phase(1)
    assert (phase["status"], phase["cycles"], phase["failure_category"]) == ("in_debug", 1, "aicore")
    assert phase["attempt"] is None and phase["failing_module_boundary"] == 1
    assert one.submit(1) != attempt


def test_ten_cycles_block_a_phase(driver):
    one = driver().reach(5)
    for count in range(1, 11):
        one.do("record_verdict", attempt=one.submit(1), verdict="FAIL")
        assert one.phase(1)["cycles"] == count
    assert one.phase(1)["status"] == "blocked"
    for call in (
        lambda: one.do("submit_for_verify", phase="M1"),
        lambda: one.do("start_phase", phase="M1"),
        lambda: one.do("fail_phase", phase="M1", failure_category="precision", verdict="FAIL"),
        lambda: one.do("reopen_phase", phase="M1", reason="once more"),
    ):
        refused(call, "blocked", "stage 3 or 4")
    one.do("rollback_to_stage", target_stage=4, reason="the design does not work")
    one.do("freeze_plan")
    one.do("complete_stage", stage=4)
    assert one.phase(1)["cycles"] == 0


def test_a_machine_failure_is_not_the_kernels_and_ends_after_two(driver):
    one = driver().reach(5)
    attempt = one.submit(1)
    for count in (1, 2):
        one.do("record_verdict", attempt=attempt, verdict="ERROR", category="infra")
        phase = one.phase(1)
        assert (phase["status"], phase["cycles"], phase["infra_retries"]) == ("awaiting_verify", 0, count)
    refused(lambda: one.do("record_verdict", attempt=attempt, verdict="ERROR", category="infra"), "doctor")
    one.do("record_verdict", attempt=attempt)
    assert one.phase(1)["status"] == "verified"


def test_reopening_opens_the_phase_and_all_after_it(driver):
    three = driver(n=3).reach(6)
    three.do("reopen_phase", phase="M2", reason="the wrong boundary")
    assert [three.phase(k)["status"] for k in (1, 2, 3)] == ["verified", "pending", "pending"]
    assert three.phase(2)["cycles"] == 1 and three.phase(3)["cycles"] == 0
    assert three.state["current_stage"] == 5 and three.state["stage_status"]["6"] == "pending"
    phases = {row.get("phase") for row in three.state["artifact_hashes"].values() if row["stage"] == 5}
    assert phases == {"M1"}
    assert three.state["composition"] is None and three.state["integration"] is None
    assert three.state["rollback_history"][-1]["from_phase"] == "M2"
    refused(lambda: three.do("reopen_phase", phase="M3", reason="x"), "nothing to reopen")


def test_reopening_again_and_again_ends_in_blocked(driver):
    one = driver().reach(5)
    for _ in range(10):
        one.submit(1)
        one.do("reopen_phase", phase="M1", reason="again")
    assert one.phase(1)["status"] == "blocked"


def test_composition_and_integration_belong_to_the_staged_path(driver):
    one = driver(n=1).reach(5)
    one.verify(1)
    refused(lambda: one.do("record_composition"), "single module")
    two = driver(n=2).reach(5)
    refused(lambda: two.do("record_composition"), "not every phase is verified")
    two.verify(1)
    two.verify(2)
    refused(lambda: two.do("record_integration"), "record_composition first")
    refused(lambda: two.do("complete_stage", stage=5), "composition is not recorded")
    two.do("record_composition")
    refused(lambda: two.do("complete_stage", stage=5), "integration is not recorded")
    two.do("record_integration")
    two.do("complete_stage", stage=5)


def test_the_tuned_kernel_may_change_in_stage_7_and_not_before(driver):
    one = driver(n=2).reach(6)
    assert "impl_py" in one.state["artifact_hashes"]
    one.do("complete_stage", stage=6)
    assert "impl_py" not in one.state["artifact_hashes"]
    assert "module_M1_impl" in one.state["artifact_hashes"], "the verified modules stay frozen"
    one.do("complete_stage", stage=7)
    assert one.state["artifact_hashes"]["impl_py"]["stage"] == 7
