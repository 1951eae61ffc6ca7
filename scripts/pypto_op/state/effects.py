"""Effects of the actions: each changes the draft that `machine.step` hands over, after the conditions were checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pypto_op.errors import Refused
from pypto_op.state.conditions import attempt_phase
from pypto_op.state.facts import Arguments, Facts, Verdict
from pypto_op.state.model import Phase, State, fresh, fresh_phase, no_phases, phase_name, phase_number, phases
from pypto_op.vocabulary import FailureCategory, PhaseStatus, StageStatus, Status
from pypto_op.workflow import workflow

Effect = Callable[[Any, Arguments, Facts], State]
EFFECTS: dict[str, Effect] = {}


def _effect(function: Effect) -> Effect:
    EFFECTS[function.__name__.lstrip("_")] = function
    return function


# -- stages -----------------------------------------------------------------------------------------------


@_effect
def _init(before: State | None, args: Arguments, facts: Facts) -> State:
    limit = workflow().limits.max_stage
    state = fresh(
        facts.get("op", "") or (before["operator_name"] if before else ""),
        max_stage=args.get("max_stage", limit),
        run_id=facts["run_id"],
        key_id=facts["key_id"],
        token_required=facts["token_required"],
        time=facts["time"],
    )
    # Attempt ids never repeat, so an answer to an attempt of the run before cannot fit one of this run.
    state["attempts_issued"] = before["attempts_issued"] if before else 0
    return state


@_effect
def _start_stage(state: State, args: Arguments, facts: Facts) -> State:
    _set_stage(state, args["stage"], StageStatus.IN_PROGRESS)
    state["current_stage"] = args["stage"]
    return state


@_effect
def _complete_stage(state: State, args: Arguments, facts: Facts) -> State:
    stage = args["stage"]
    if "verdict" in facts:
        _need_pass(facts["verdict"])
    state["artifact_hashes"].update(facts.get("frozen", {}))
    if "verdict" in facts:
        state["evidence"][str(stage)] = facts["verdict"]["report_sha256"]
    _set_stage(state, stage, StageStatus.COMPLETED)
    if stage < state["max_stage"]:
        for name in workflow().stages[stage].releases:
            state["released"][name] = state["artifact_hashes"].pop(name)
        _set_stage(state, stage + 1, StageStatus.IN_PROGRESS)
        state["current_stage"] = stage + 1
    return state


@_effect
def _fail_stage(state: State, args: Arguments, facts: Facts) -> State:
    stage = args["stage"]
    _set_stage(state, stage, StageStatus.FAILED)
    if stage == 4:
        _drop_plan(state)
        _drop_frozen(state, from_stage=4)
    _count_retry(state, stage)
    return state


@_effect
def _rollback_to_stage(state: State, args: Arguments, facts: Facts) -> State:
    target = args["target_stage"]
    _remember_rollback(state, args, facts, target)
    if target <= 4:
        _drop_plan(state)
    elif target == 5:
        _reopen(state, 1)
    _back_to(state, target)
    if target == 6:  # before tuning the kernel was frozen: back there, it must be those bytes again
        state["artifact_hashes"].update(state["released"])
    state["released"] = {}
    return state


@_effect
def _submit_design(state: State, args: Arguments, facts: Facts) -> State:
    return state


@_effect
def _freeze_plan(state: State, args: Arguments, facts: Facts) -> State:
    plan = facts["plan"]
    state["plan"] = plan
    state["artifact_hashes"].update(facts.get("frozen", {}))
    state["stage5_phases"] = no_phases()
    for k in range(1, plan["module_count"] + 1):
        phases(state)[phase_name(k)] = fresh_phase()
    return state


# -- phases -----------------------------------------------------------------------------------------------


@_effect
def _start_phase(state: State, args: Arguments, facts: Facts) -> State:
    phases(state)[args["phase"]]["status"] = str(PhaseStatus.IN_PROGRESS)
    state["stage5_phases"]["active_phase"] = args["phase"]
    return state


@_effect
def _submit_for_verify(state: State, args: Arguments, facts: Facts) -> State:
    phase = phases(state)[args["phase"]]
    state["attempts_issued"] += 1
    phase["status"] = str(PhaseStatus.AWAITING_VERIFY)
    phase["attempt"] = f"{args['phase']}.{state['attempts_issued']}"
    phase["infra_retries"] = 0
    phase["submitted"] = dict(facts["submitted"])
    phase["functions"] = dict(facts.get("functions", {}))
    return state


@_effect
def _record_verdict(state: State, args: Arguments, facts: Facts) -> State:
    name = attempt_phase(state, args["attempt"])
    assert name is not None  # the condition `attempt_open` holds
    verdict = facts["verdict"]
    if Status(verdict["status"]).passed:  # the gate has seen that it covers what the phase demands
        return _verified(state, name, facts)
    if verdict.get("failure_category") == FailureCategory.INFRA:
        return _infra_retry(state, name)
    return _failed(state, name, verdict.get("failure_category", str(FailureCategory.OTHER)), verdict)


@_effect
def _complete_phase(state: State, args: Arguments, facts: Facts) -> State:
    _need_pass(facts["verdict"])
    return _verified(state, args["phase"], facts)


@_effect
def _fail_phase(state: State, args: Arguments, facts: Facts) -> State:
    verdict = facts["verdict"]
    if verdict["status"] not in (Status.FAIL, Status.ERROR):
        raise Refused("the judge did not fail these bytes", remedy="run complete_phase")
    if "failing_module_boundary" in args:
        verdict = {**verdict, "failing_module_boundary": args["failing_module_boundary"]}
    if "last_error" in args:
        verdict = {**verdict, "summary": args["last_error"]}
    return _failed(state, args["phase"], args["failure_category"], verdict)


@_effect
def _reopen_phase(state: State, args: Arguments, facts: Facts) -> State:
    k = phase_number(args["phase"])
    if state["current_stage"] > 5:
        _remember_rollback(state, args, facts, 5)
        _back_to(state, 5, drop=False)
    _reopen(state, k)
    _count_cycle(state, args["phase"], otherwise=PhaseStatus.PENDING)
    return state


@_effect
def _record_composition(state: State, args: Arguments, facts: Facts) -> State:
    state["composition"] = dict(facts["composition"])
    return state


@_effect
def _record_integration(state: State, args: Arguments, facts: Facts) -> State:
    frozen = facts["frozen"]
    state["artifact_hashes"].update(frozen)
    state["integration"] = {"impl_sha256": frozen["impl_py"]["sha256"], "at": facts["time"]}
    return state


# -- artefacts, roles, owner ------------------------------------------------------------------------------


@_effect
def _record_artifact_hash(state: State, args: Arguments, facts: Facts) -> State:
    state["artifact_hashes"].update(facts["frozen"])
    return state


@_effect
def _dispatch(state: State, args: Arguments, facts: Facts) -> State:
    return state


@_effect
def _unblock(state: State, args: Arguments, facts: Facts) -> State:
    if "phase" in args:
        phase = phases(state)[args["phase"]]
        phase["cycles"] = 0
        phase["status"] = str(PhaseStatus.IN_DEBUG)
        state["stage5_phases"]["active_phase"] = args["phase"]
    else:
        state["stage_retry_count"][str(args["stage"])] = 0
        _set_stage(state, args["stage"], StageStatus.FAILED)
    return state


@_effect
def _adopt(state: State, args: Arguments, facts: Facts) -> State:
    state["run_id"] = facts["run_id"]
    state["key_id"] = facts["key_id"]
    state["token_required"] = facts["token_required"]
    return state


# -- shared -----------------------------------------------------------------------------------------------


def _set_stage(state: State, stage: int, status: StageStatus) -> None:
    state["stage_status"][str(stage)] = str(status)


def _count_retry(state: State, stage: int) -> None:
    count = state["stage_retry_count"][str(stage)] + 1
    state["stage_retry_count"][str(stage)] = count
    if count >= state["max_retries_per_stage"]:
        _set_stage(state, stage, StageStatus.BLOCKED)


def _back_to(state: State, target: int, *, drop: bool = True) -> None:
    """Make `target` the current stage again; what it and later ones own thaws, unless told not to."""
    for later in range(target + 1, state["max_stage"] + 1):
        _set_stage(state, later, StageStatus.PENDING)
    _set_stage(state, target, StageStatus.IN_PROGRESS)
    state["current_stage"] = target
    state["evidence"] = {n: sha for n, sha in state["evidence"].items() if int(n) < target}
    if drop:
        _drop_frozen(state, from_stage=target)
    _count_retry(state, target)


def _remember_rollback(state: State, args: Arguments, facts: Facts, target: int) -> None:
    entry: dict[str, Any] = {
        "from_stage": state["current_stage"],
        "to_stage": target,
        "reason": args["reason"],
        "timestamp": facts["time"],
    }
    from_phase = args.get("failed_phase") or args.get("phase") or state["stage5_phases"]["active_phase"]
    if from_phase:
        entry["from_phase"] = from_phase
    if "failure_category" in args:
        entry["failure_category"] = args["failure_category"]
    state["rollback_history"].append(entry)


def _drop_plan(state: State) -> None:
    state["plan"] = None
    state["stage5_phases"] = no_phases()
    state["composition"] = state["integration"] = None


def _drop_frozen(state: State, *, from_stage: int) -> None:
    state["artifact_hashes"] = {name: row for name, row in state["artifact_hashes"].items() if row["stage"] < from_stage}


def _reopen(state: State, k: int) -> None:
    """Open M_k..M_N: their files thaw, and what was built from them is forgotten. Cycles are kept."""
    table = phases(state)
    opened = [name for name in table if phase_number(name) >= k]
    for name in opened:
        table[name] = fresh_phase(table[name]["cycles"])
    state["artifact_hashes"] = {
        name: row
        for name, row in state["artifact_hashes"].items()
        if row["stage"] < 5 or row.get("phase") in set(table) - set(opened)
    }
    state["stage5_phases"]["active_phase"] = None
    state["released"] = {}
    state["composition"] = state["integration"] = None
    state["evidence"] = {n: sha for n, sha in state["evidence"].items() if int(n) < 5}


def _need_pass(verdict: Verdict) -> None:
    if not Status(verdict["status"]).passed:
        raise Refused(f"the judge says {verdict['status']}", remedy="see eval/evaluation_report.json")


def _verified(state: State, name: str, facts: Facts) -> State:
    phase = phases(state)[name]
    phase["status"] = str(PhaseStatus.VERIFIED)
    phase["attempt"] = None
    phase["verified_at"] = facts["time"]
    phase["evidence"] = facts["verdict"]["report_sha256"]
    for stale in ("failure_category", "failing_module_boundary", "last_error"):
        phase.pop(stale, None)  # type: ignore[misc]
    state["artifact_hashes"].update(facts.get("frozen", {}))
    state["stage5_phases"]["active_phase"] = None
    return state


def _failed(state: State, name: str, category: str, verdict: Verdict) -> State:
    phase: Phase = phases(state)[name]
    phase["attempt"] = None
    phase["failure_category"] = category
    phase["evidence"] = verdict["report_sha256"]
    phase["failing_module_boundary"] = verdict.get("failing_module_boundary", phase_number(name))
    if verdict.get("summary"):
        phase["last_error"] = verdict["summary"]
    _count_cycle(state, name, otherwise=PhaseStatus.IN_DEBUG)
    return state


def _count_cycle(state: State, name: str, *, otherwise: PhaseStatus) -> None:
    phase = phases(state)[name]
    phase["cycles"] += 1
    blocked = phase["cycles"] >= state["stage5_phases"]["max_cycles_per_phase"]
    phase["status"] = str(PhaseStatus.BLOCKED if blocked else otherwise)
    if blocked:
        state["stage5_phases"]["active_phase"] = None


def _infra_retry(state: State, name: str) -> State:
    phase = phases(state)[name]
    limit = workflow().limits.infra_retries_per_attempt
    if phase["infra_retries"] >= limit:
        raise Refused(
            f"{name} met {limit + 1} infrastructure failures in one attempt",
            remedy="repair the host (`pypto-op doctor`), then judge again",
        )
    phase["infra_retries"] += 1
    return state
