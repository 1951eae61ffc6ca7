"""The machine under arbitrary sequences of actions: what must hold always, and that every state is reached."""

import copy

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import Phase as HypothesisPhase
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from tests.state.conftest import Driver

from pypto_op.documents import schema
from pypto_op.errors import Refused
from pypto_op.state import arguments
from pypto_op.state.machine import action_row, legal_actions, step
from pypto_op.state.model import phases
from pypto_op.vocabulary import FailureCategory, PhaseStatus, Role, StageStatus
from pypto_op.workflow import workflow

ACTIONS = list(workflow().actions)
STAGE_PROGRESS = ["complete_stage", "fail_stage", "start_stage"]
PHASE_WORK = ["start_phase", "submit_for_verify", "record_verdict", "complete_phase", "fail_phase"]

reached_stages: set[tuple[str, str]] = set()
reached_phases: set[str] = set()


class Machine(RuleBasedStateMachine):
    """Drives the pure machine with legal and illegal actions; the driver supplies honest facts."""

    @initialize(n=st.integers(1, 3), stage=st.sampled_from([5, 8, 6, 7, 4, 3, 2, 1, 0]), failures=st.sampled_from([0, 1, 5, 10]))
    def begin(self, n, stage, failures):
        """Begin anywhere, so that late stages are walked as much as early ones."""
        self.driver = Driver(n=n)
        if stage:
            self.driver.reach(stage)
            self.note(self.driver.state)
        if stage == 5:
            self.fail(1, failures)
            return
        for _ in range(failures):
            self.attempt("start_stage", stage=stage)
            self.attempt("fail_stage", stage=stage)

    def attempt(self, action, **given):
        """Take an action; whether it is taken or refused, the old state must be unharmed."""
        before = self.driver.state
        kept = copy.deepcopy(before)
        verdict = given.pop("verdict", "PASS")
        try:
            args = arguments.parse(action_row(action), given)
            facts = self.driver.facts(action, args, verdict, "precision")
            after = step(before, action, args, facts)
        except Refused as error:
            assert before == kept and "\n" not in str(error)
            return
        assert before == kept
        self.transition_is_lawful(kept, after, action)
        self.driver.state = after
        self.note(after)

    def note(self, state):
        reached_stages.update(state["stage_status"].items())
        reached_phases.update(phase["status"] for phase in phases(state).values())

    def transition_is_lawful(self, before, after, action):
        if before is None or action in ("init", "unblock"):
            return
        for name, phase in phases(after).items():
            old = phases(before).get(name, {"status": "pending", "cycles": 0})
            if phase["status"] == PhaseStatus.VERIFIED != old["status"]:
                assert action in ("record_verdict", "complete_phase"), action
                assert old["status"] == PhaseStatus.AWAITING_VERIFY
            if phase["status"] == PhaseStatus.IN_DEBUG != old["status"]:
                assert action in ("record_verdict", "fail_phase"), action
            if after["plan"] and before["plan"]:
                assert phase["cycles"] >= old["cycles"], "a count never goes down"
        for stage, status in after["stage_status"].items():
            if status == StageStatus.COMPLETED != before["stage_status"][stage]:
                assert action == "complete_stage"
            assert action == "init" or after["stage_retry_count"][stage] >= before["stage_retry_count"][stage]

    @rule(action=st.sampled_from(STAGE_PROGRESS), stage=st.integers(1, 7))
    def move_stage(self, action, stage):
        self.attempt(action, stage=stage)

    @rule(stage=st.integers(1, 7), steps=st.integers(1, 30))
    def go_on(self, stage, steps):
        """Take legal actions that lead on, until a stage is reached, so that late states are reached too."""
        side_ways = ("fail_stage", "fail_phase", "reopen_phase", "submit_design", "complete_phase")
        for _ in range(steps):
            if self.driver.state and self.driver.state["current_stage"] >= stage:
                return
            forward = [text for text in legal_actions(self.driver.state) if not text.startswith(side_ways)]
            if not forward:
                return
            action, *rest = forward[0].split()
            given = dict(zip((word[2:] for word in rest[::2]), rest[1::2], strict=True))
            self.attempt(action, **given)

    @rule(
        action=st.sampled_from(PHASE_WORK),
        k=st.integers(1, 4),
        verdict=st.sampled_from(["PASS", "FAIL", "ERROR"]),
    )
    def move_phase(self, action, k, verdict):
        given = {"phase": f"M{k}"}
        state = self.driver.state
        if action == "record_verdict":
            table = phases(state) if state else {}
            given["attempt"] = (table.get(f"M{k}") or {}).get("attempt") or f"M{k}.1"
        if action == "fail_phase":
            given["failure_category"] = "precision"
            verdict = "FAIL"
        if action == "complete_phase":
            verdict = "PASS"
        self.attempt(action, verdict=verdict, **given)

    @rule(k=st.integers(1, 3), times=st.sampled_from([1, 2, 10]))
    def fail_attempts(self, k, times):
        self.fail(k, times)

    @rule(times=st.sampled_from([1, 5]))
    def fail_construction(self, times):
        for _ in range(times):
            self.attempt("start_stage", stage=5)
            self.attempt("fail_stage", stage=5)

    def fail(self, k, times):
        """Failed attempts in a row; ten of them, so that `blocked` is reached."""
        for _ in range(times):
            self.attempt("start_phase", phase=f"M{k}")
            self.attempt("submit_for_verify", phase=f"M{k}")
            self.attempt("fail_phase", phase=f"M{k}", failure_category="oom", verdict="FAIL")

    @rule(k=st.integers(1, 3))
    def reopen(self, k):
        self.attempt("reopen_phase", phase=f"M{k}", reason="redo")

    @rule(back_to=st.integers(1, 7), category=st.sampled_from([None, *map(str, FailureCategory)]))
    def roll_back(self, back_to, category):
        self.attempt("rollback_to_stage", target_stage=back_to, reason="redo", failure_category=category)

    @rule(role=st.sampled_from([str(role) for role in Role]), k=st.one_of(st.none(), st.integers(1, 3)))
    def send(self, role, k):
        self.attempt("dispatch", role=role, phase=k)

    @rule(
        action=st.sampled_from(ACTIONS),
        stage=st.integers(0, 8),
        k=st.integers(0, 4),
        by=st.sampled_from(["orchestrator", "person"]),
    )
    def anything(self, action, stage, k, by):
        filler = {
            "stage": stage, "phase": k, "target_stage": stage, "reason": "why", "failure_category": "other",
            "attempt": f"M{k}.{stage}", "name": "spec_md", "role": "coder", "max_stage": stage,
        }  # fmt: skip
        wanted = {name: filler[name] for name, need in action_row(action).args.items() if need == "required"}
        self.driver.by = by
        if action == "unblock":
            wanted["stage"] = stage
        self.attempt(action, **wanted)
        self.driver.by = "orchestrator"

    @invariant()
    def holds(self):
        state = getattr(self, "driver", None) and self.driver.state
        if not state:
            return
        statuses = [state["stage_status"][str(s)] for s in range(1, state["max_stage"] + 1)]
        current = state["current_stage"]
        assert statuses.count(StageStatus.IN_PROGRESS) <= 1
        assert all(s == StageStatus.COMPLETED for s in statuses[: current - 1])
        assert all(s == StageStatus.PENDING for s in statuses[current:])
        table = phases(state)
        busy = [name for name, p in table.items() if p["status"] in ("in_progress", "awaiting_verify", "in_debug")]
        assert len(busy) <= 1 and (busy == [] or state["stage5_phases"]["active_phase"] == busy[0])
        verified = [p["status"] == PhaseStatus.VERIFIED for p in table.values()]
        assert verified == sorted(verified, reverse=True), "M_k is verified only after M_1..M_k-1"
        for name, phase in table.items():
            assert phase["cycles"] <= state["stage5_phases"]["max_cycles_per_phase"]
            assert (phase["attempt"] is not None) == (phase["status"] == PhaseStatus.AWAITING_VERIFY)
            frozen = [row for row in state["artifact_hashes"].values() if row.get("phase") == name]
            if phase["status"] != PhaseStatus.VERIFIED:
                assert frozen == []
            elif current < 7:
                assert frozen != []
        if current > 5:
            assert table and all(verified)
            assert state["plan"]["module_count"] == len(table) == self.driver.n
            assert self.driver.n == 1 or (state["composition"] and state["integration"])

    def teardown(self):
        """The schema is checked at the end of each walk only: jsonschema is slower than the machine."""
        if getattr(self, "driver", None) and self.driver.state:
            document = {**self.driver.state, "journal": {"sequence": 1, "head": "0" * 64}, "seal": "0" * 64}
            assert schema.findings(document, "state") == []


WALK = settings(
    max_examples=300,
    stateful_step_count=20,
    derandomize=True,
    phases=[HypothesisPhase.generate, HypothesisPhase.shrink],
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.slow
def test_the_machine_keeps_its_laws_and_every_state_is_reached():
    run_state_machine_as_test(Machine, settings=WALK)
    assert reached_phases == {str(status) for status in PhaseStatus}
    wanted = {(str(stage), str(status)) for stage in range(1, 8) for status in StageStatus}
    # Stage 1 is never pending: `init` begins it.
    assert reached_stages == wanted - {("1", "pending")}
