"""The predecessor's verified holes (contracts, workflow 2.5), one group of tests each: every one is closed."""

import pytest

from pypto_op.errors import ContractError, Refused
from pypto_op.state import store
from pypto_op.state.machine import step
from pypto_op.state.service import transition


def refused(call, words):
    with pytest.raises(Refused) as caught:
        call()
    assert words in str(caught.value) and "\n" not in str(caught.value), caught.value


class TestHole1StageFiveNeedsAllItsPhases:
    def test_it_does_not_end_with_an_empty_phase_map(self, planted):
        ws = planted(4)
        refused(lambda: transition(ws.root, "complete_stage", stage=5), "not the current stage")
        refused(lambda: transition(ws.root, "complete_stage", stage=4), "no plan is frozen")

    def test_it_does_not_end_with_some_phases_verified(self, driver):
        three = driver(n=3).reach(5)
        for k in (1, 2):
            three.verify(k)
            refused(lambda: three.do("complete_stage", stage=5), "not every phase is verified")

    def test_n_comes_from_the_plan_and_from_nowhere_else(self, planted):
        ws = planted(5, n=3)
        refused(lambda: transition(ws.root, "start_phase", phase="M4"), "not in the plan; the plan has M1..M3")


class TestHole2PhasesAreStartedInOrder:
    @pytest.mark.parametrize("phase", ["", "M0", "Mx", "module1", "M3", "M2", "M1 M2"])
    def test_no_other_name_and_no_other_order(self, planted, phase):
        ws = planted(5, n=3)
        refused(lambda: transition(ws.root, "start_phase", phase=phase), ";")

    @pytest.mark.parametrize("verdict", [None, "FAIL"])
    def test_no_second_phase_while_one_waits_or_is_debugged(self, driver, verdict):
        two = driver(n=2).reach(5)
        attempt = two.submit(1)
        if verdict:
            two.do("record_verdict", attempt=attempt, verdict=verdict)
        refused(lambda: two.do("start_phase", phase="M2"), "verify M1 first")


class TestHole3APhaseIsNotVerifiedBySayingSo:
    def test_not_without_being_submitted(self, planted):
        ws = planted(5)
        refused(lambda: transition(ws.root, "complete_phase", phase="M1"), "run start_phase first")
        transition(ws.root, "start_phase", phase="M1")
        refused(lambda: transition(ws.root, "complete_phase", phase="M1"), "run submit_for_verify first")

    def test_not_without_a_passing_verdict(self, driver):
        one = driver().reach(5)
        one.submit(1)
        refused(lambda: one.do("complete_phase", phase="M1", verdict="FAIL"), "the judge says FAIL")
        refused(lambda: one.do("complete_phase", phase="M1", verdict="SKIPPED"), "the judge says SKIPPED")
        assert one.phase(1)["status"] == "awaiting_verify"


class TestHole4FailingAPhaseHasRules:
    def test_a_verified_phase_does_not_fail(self, driver):
        one = driver().reach(5)
        one.verify(1)
        refused(lambda: one.do("fail_phase", phase="M1", failure_category="precision", verdict="FAIL"), "M1 is verified")

    @pytest.mark.parametrize("category", ["", "  ", "bad", "PRECISION", None])
    def test_a_category_is_needed_and_known(self, driver, category):
        one = driver().reach(5)
        one.submit(1)
        refused(lambda: one.do("fail_phase", phase="M1", failure_category=category), "failure")

    def test_not_when_stage_five_is_closed(self, driver):
        one = driver().reach(6)
        refused(lambda: one.do("fail_phase", phase="M1", failure_category="oom", verdict="FAIL"), "stage 5 is not")

    def test_a_blocked_phase_counts_no_further(self, driver):
        one = driver().reach(5)
        for _ in range(10):
            one.submit(1)
            one.do("fail_phase", phase="M1", failure_category="oom", verdict="FAIL")
        refused(lambda: one.do("fail_phase", phase="M1", failure_category="oom", verdict="FAIL"), "M1 is blocked")
        assert one.phase(1)["cycles"] == 10

    def test_a_pass_is_not_failed_by_word(self, driver):
        one = driver().reach(5)
        one.submit(1)
        refused(lambda: one.do("fail_phase", phase="M1", failure_category="oom"), "did not fail these bytes")


class TestHole5ARestartIsPossible:
    def test_within_stage_five(self, driver):
        two = driver(n=2).reach(5)
        two.verify(1)
        refused(lambda: two.do("rollback_to_stage", target_stage=5, reason="redo"), "use reopen_phase")
        two.do("reopen_phase", phase="M1", reason="the boundary was wrong")
        two.do("start_phase", phase="M1")

    def test_from_a_later_stage(self, driver):
        one = driver().reach(6)
        one.do("rollback_to_stage", target_stage=5, reason="the final run failed")
        one.do("start_phase", phase="M1")
        assert one.phase(1)["status"] == "in_progress"


class TestHole6EveryFrozenFileIsChecked:
    @pytest.mark.parametrize("how", ["changed", "deleted", "replaced by a folder", "replaced by a link"])
    def test_whatever_happens_to_it(self, planted, tmp_path, how):
        ws = planted(5, n=2)
        state = store.load(ws).state
        names = sorted(row["path"] for row in state["artifact_hashes"].values())
        assert len(names) == 8
        for name in names:
            path = ws.root / name
            good = path.read_bytes()
            path.unlink()
            if how == "changed":
                path.write_bytes(good + b"\n")
            elif how == "replaced by a folder":
                path.mkdir()
            elif how == "replaced by a link":
                (tmp_path / "elsewhere").write_text("other")
                path.symlink_to(tmp_path / "elsewhere")
            refused(lambda: transition(ws.root, "start_phase", phase="M1"), name)
            path.rmdir() if path.is_dir() else path.unlink(missing_ok=True)
            path.write_bytes(good)
        transition(ws.root, "start_phase", phase="M1")

    def test_a_file_that_was_absent_must_stay_absent(self, planted):
        ws = planted(3)
        with store.locked(ws):
            loaded = store.load(ws)
            state = loaded.state
            state["artifact_hashes"]["adversarial_suite_json"] = {"path": "suite", "sha256": "absent", "stage": 1}
            store.write_state(ws, state, loaded.tail)
        (ws.root / "suite").write_text("an easy suite")
        refused(lambda: transition(ws.root, "fail_stage", stage=3), "appeared since stage 1 froze it")

    def test_the_tool_computes_the_hash_whatever_the_caller_says(self, planted):
        ws = planted(2)
        ws.golden.write_text("def relu_golden(x): return x")
        refused(lambda: transition(ws.root, "record_artifact_hash", name="golden_py", hash="0" * 64), "has the sha256")
        transition(ws.root, "record_artifact_hash", name="golden_py")
        assert store.load(ws).state["artifact_hashes"]["golden_py"]["path"] == "relu_golden.py"
        ws.golden.write_text("def relu_golden(x): return 0 * x")
        refused(lambda: transition(ws.root, "fail_stage", stage=2), "was changed since stage 2 froze it")

    def test_a_rollback_forgets_the_kernel_s_hash_too(self, driver):
        one = driver().reach(6)
        assert "impl_py" in one.state["artifact_hashes"]
        one.do("rollback_to_stage", target_stage=5, reason="redo")
        assert "impl_py" not in one.state["artifact_hashes"]


class TestHole7CompositionAndCleanUpLeaveATrace:
    def test_stage_five_needs_both(self, driver):
        two = driver(n=2).reach(5)
        two.verify(1)
        two.verify(2)
        refused(lambda: two.do("complete_stage", stage=5), "run record_composition")
        two.do("record_composition")
        refused(lambda: two.do("complete_stage", stage=5), "run record_integration")
        two.do("record_integration")
        two.do("complete_stage", stage=5)
        assert two.state["composition"]["status"] == "PASS" and two.state["integration"]["impl_sha256"]


class TestHole8NumbersMeanWhatTheySay:
    def test_max_stage_counts_for_an_operator_that_begins_anew(self, driver):
        one = driver().reach(8)
        one.do("init", max_stage=6)
        assert one.state["max_stage"] == 6 and set(one.state["stage_status"]) == set("123456")
        refused(lambda: one.do("start_stage", stage=7), "ends with stage 6")

    @pytest.mark.parametrize("stage", [1.9, "1.9", 2.0, True, "two"])
    def test_a_stage_is_not_rounded(self, planted, stage):
        refused(lambda: transition(planted(2).root, "complete_stage", stage=stage), "no stage")


class TestHole9AttemptsAndRetriesEnd:
    def test_a_stale_answer_does_not_complete_a_newer_attempt(self, driver):
        one = driver().reach(5)
        old = one.submit(1)
        one.do("record_verdict", attempt=old, verdict="FAIL")
        new = one.submit(1)
        assert old != new
        for verdict in ("PASS", "FAIL"):
            refused(lambda verdict=verdict: one.do("record_verdict", attempt=old, verdict=verdict), f"{old} of M1 is stale")
        refused(lambda: one.do("complete_phase", phase="M1", attempt=old), "stale; the open attempt is")
        one.do("record_verdict", attempt=new)
        refused(lambda: one.do("record_verdict", attempt=new), "stale; no attempt is open")

    def test_an_attempt_of_an_earlier_design_never_fits_again(self, driver):
        one = driver().reach(5)
        old = one.submit(1)
        one.do("rollback_to_stage", target_stage=4, reason="redesign")
        one.do("freeze_plan")
        one.do("complete_stage", stage=4)
        assert one.submit(1) != old
        refused(lambda: one.do("record_verdict", attempt=old), "stale")

    def test_stages_and_phases_end_in_blocked(self, driver):
        one = driver().reach(2)
        for _ in range(5):
            one.do("fail_stage", stage=2)
            if one.state["stage_status"]["2"] == "failed":
                one.do("start_stage", stage=2)
        assert one.state["stage_status"]["2"] == "blocked"


class TestHole10LostUpdates:
    """Read and rename without a lock: `test_durability` races eight processes; here the journal is the witness."""

    def test_a_step_that_was_taken_on_an_older_state_cannot_be_written_over_a_newer_one(self, planted):
        ws = planted(2)
        with store.locked(ws):
            older = store.load(ws)
        transition(ws.root, "fail_stage", stage=2)
        args, facts = {"stage": 2}, {"time": "now", "by": "owner"}
        stale = step(older.state, "fail_stage", args, facts)
        before = ws.journal.read_bytes()
        with pytest.raises(ContractError, match="went on while"):
            store.commit(ws, older.tail, stale, action="fail_stage", args=args, facts=facts)  # without the lock
        assert ws.journal.read_bytes() == before
