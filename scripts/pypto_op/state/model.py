"""The state of an operator: its shape, a fresh one, a copy, and the questions that everybody asks it."""

from __future__ import annotations

from typing import Any, TypedDict

from pypto_op.vocabulary import Decomposition, PhaseStatus, StageStatus
from pypto_op.workflow import workflow

SCHEMA_VERSION = "3.0"


class _PhaseCore(TypedDict):
    status: str
    cycles: int
    attempt: str | None
    infra_retries: int
    submitted: dict[str, str]


class Phase(_PhaseCore, total=False):
    """Construction phase M_k; `submitted`: hashes of the attempt's files, `functions`: of its code."""

    failure_category: str
    failing_module_boundary: int
    last_error: str
    verified_at: str
    evidence: str
    functions: dict[str, str]


class Phases(TypedDict):
    """All phases of stage 5."""

    active_phase: str | None
    phase_status: dict[str, Phase]
    max_cycles_per_phase: int


class _FrozenCore(TypedDict):
    path: str
    sha256: str
    stage: int


class Frozen(_FrozenCore, total=False):
    """A frozen file: relative path, sha256 (or `absent`), the stage that owns it, and its phase if any."""

    phase: str


class Plan(TypedDict):
    """What `freeze_plan` fixed."""

    schema_version: int
    op: str
    decomposition: str
    module_count: int
    modules: list[dict[str, Any]]
    modes: list[str]
    design_sha256: str
    interfaces_sha256: str
    frozen_at: str


class State(TypedDict):
    """The state machine's whole state; `schemas/state.schema.json` describes the file it is kept in."""

    schema_version: str
    operator_name: str
    run_id: str
    key_id: str
    token_required: bool
    max_stage: int
    current_stage: int
    stage_status: dict[str, str]
    stage_retry_count: dict[str, int]
    max_retries_per_stage: int
    stage5_phases: Phases
    attempts_issued: int
    plan: Plan | None
    artifact_hashes: dict[str, Frozen]
    released: dict[str, Frozen]
    composition: dict[str, Any] | None
    integration: dict[str, Any] | None
    evidence: dict[str, str]
    rollback_history: list[dict[str, Any]]
    last_updated: str


def fresh(op: str, *, max_stage: int, run_id: str, key_id: str, token_required: bool, time: str) -> State:
    """Return the state of an operator whose stage 1 has just begun."""
    limits = workflow().limits
    stages = [str(n) for n in range(1, max_stage + 1)]
    return State(
        schema_version=SCHEMA_VERSION,
        operator_name=op,
        run_id=run_id,
        key_id=key_id,
        token_required=token_required,
        max_stage=max_stage,
        current_stage=1,
        stage_status={n: str(StageStatus.IN_PROGRESS if n == "1" else StageStatus.PENDING) for n in stages},
        stage_retry_count=dict.fromkeys(stages, 0),
        max_retries_per_stage=limits.retries_per_stage,
        stage5_phases=no_phases(),
        attempts_issued=0,
        plan=None,
        artifact_hashes={},
        released={},
        composition=None,
        integration=None,
        evidence={},
        rollback_history=[],
        last_updated=time,
    )


def no_phases() -> Phases:
    """Return the phase table before a plan is frozen."""
    return Phases(active_phase=None, phase_status={}, max_cycles_per_phase=workflow().limits.cycles_per_phase)


def fresh_phase(cycles: int = 0) -> Phase:
    """Return a phase that nobody has begun; `cycles` survive a reopening."""
    return Phase(status=str(PhaseStatus.PENDING), cycles=cycles, attempt=None, infra_retries=0, submitted={})


def phase_name(k: int) -> str:
    """Return `M3` for 3."""
    return f"M{k}"


def phase_number(name: str) -> int:
    """Return 3 for `M3`."""
    return int(name[1:])


def phases(state: State) -> dict[str, Phase]:
    """Return the phases by name, in no order; empty before the plan is frozen."""
    return state["stage5_phases"]["phase_status"]


def phase_names(state: State) -> list[str]:
    """Return the names of the phases, in order."""
    return [phase_name(k) for k in range(1, module_count(state) + 1)]


def module_count(state: State) -> int:
    """Return N, or 0 before the plan is frozen."""
    return state["plan"]["module_count"] if state["plan"] else 0


def is_staged(state: State) -> bool:
    """Say whether the plan has several modules; False before it is frozen."""
    return state["plan"] is not None and state["plan"]["decomposition"] == Decomposition.STAGED


def stage_status(state: State, stage: int) -> str:
    """Return the status of a stage."""
    return state["stage_status"][str(stage)]


def stage_in_progress(state: State, stage: int) -> bool:
    """Say whether `stage` is being worked on."""
    return stage <= state["max_stage"] and stage_status(state, stage) == StageStatus.IN_PROGRESS


def all_verified(state: State) -> bool:
    """Say whether every planned phase is verified (and there is a plan)."""
    table = phases(state)
    return bool(table) and all(p["status"] == PhaseStatus.VERIFIED for p in table.values())


def impl_key(state: State, k: int) -> int | None:
    """Return what the judge calls phase M_k: k on the staged path, None (the integrated impl) otherwise."""
    return k if is_staged(state) else None
