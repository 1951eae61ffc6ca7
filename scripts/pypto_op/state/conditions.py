"""Preconditions of the actions: each looks at the state and the arguments, and refuses or says nothing.

`workflow.json` names them; `CONDITIONS` is the registry.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pypto_op.errors import Refused
from pypto_op.state.facts import Arguments
from pypto_op.state.model import (
    State,
    all_verified,
    is_staged,
    module_count,
    phase_name,
    phase_names,
    phase_number,
    phases,
    stage_status,
)
from pypto_op.state.model import stage_in_progress as in_progress
from pypto_op.vocabulary import FailureCategory, PhaseStatus, Role, StageStatus
from pypto_op.workflow import workflow

Condition = Callable[[Any, Arguments, str], None]
CONDITIONS: dict[str, Condition] = {}

_SUBMITTABLE = (PhaseStatus.IN_PROGRESS, PhaseStatus.IN_DEBUG)


def _condition(function: Condition) -> Condition:
    CONDITIONS[function.__name__.lstrip("_")] = function
    return function


# -- stages -----------------------------------------------------------------------------------------------


@_condition
def _may_init(state: State | None, args: Arguments, by: str) -> None:
    if args.get("stage", 1) != 1:
        raise Refused("an operator begins at stage 1", remedy="leave --stage out, or write 1")
    if state is None:
        return
    statuses = list(state["stage_status"].values())
    if StageStatus.IN_PROGRESS in statuses:
        raise Refused(f"stage {state['current_stage']} is in progress", remedy="go on with it, or use rollback_to_stage")
    if not all(status == StageStatus.COMPLETED for status in statuses) and by != "person":
        raise Refused(
            f"stage {state['current_stage']} is {stage_status(state, state['current_stage'])}; starting anew "
            "would forget its count",
            remedy="use start_stage or rollback_to_stage, or let the owner run init in a terminal",
        )


@_condition
def _stage_is_current(state: State, args: Arguments, by: str) -> None:
    if args["stage"] != state["current_stage"]:
        raise Refused(f"stage {args['stage']} is not the current stage", remedy=f"the current stage is {state['current_stage']}")


@_condition
def _stage_in_progress(state: State, args: Arguments, by: str) -> None:
    stage = args["stage"]
    if not in_progress(state, stage):
        status = stage_status(state, stage)
        remedy = "run start_stage" if status == StageStatus.FAILED else "see `pypto-op state status`"
        raise Refused(f"stage {stage} is {status}", remedy=remedy)


@_condition
def _stage_startable(state: State, args: Arguments, by: str) -> None:
    stage = args["stage"]
    if stage > state["max_stage"]:
        raise Refused(f"this operator ends with stage {state['max_stage']}", remedy="nothing is left to start")
    for number, status in state["stage_status"].items():
        if status == StageStatus.IN_PROGRESS:
            raise Refused(f"stage {number} is in progress", remedy=f"complete or fail stage {number} first")
    status = stage_status(state, stage)
    if status == StageStatus.COMPLETED:
        raise Refused(f"stage {stage} is completed", remedy="use rollback_to_stage to reopen it")
    if status == StageStatus.BLOCKED:
        raise Refused(
            f"stage {stage} is blocked after {state['stage_retry_count'][str(stage)]} failures",
            remedy="roll back to an earlier stage, or let the owner run unblock",
        )
    if stage > 1 and stage_status(state, stage - 1) != StageStatus.COMPLETED:
        raise Refused(f"stage {stage - 1} is not completed", remedy=f"complete stage {stage - 1} first")


@_condition
def _stage_work_done(state: State, args: Arguments, by: str) -> None:
    if args["stage"] == 4 and state["plan"] is None:
        raise Refused("no plan is frozen", remedy="run freeze_plan before stage 4 ends")
    if args["stage"] != 5:
        return
    _all_verified(state, args, by)
    if is_staged(state) and not state["composition"]:
        raise Refused("the composition is not recorded", remedy="run record_composition")
    if is_staged(state) and not state["integration"]:
        raise Refused("the integration is not recorded", remedy="run record_integration")


@_condition
def _rollback_target(state: State, args: Arguments, by: str) -> None:
    target, current = args["target_stage"], state["current_stage"]
    if target >= current:
        remedy = "use reopen_phase" if target == 5 == current else f"name a stage below {current}"
        raise Refused(f"stage {target} is not before the current stage {current}", remedy=remedy)
    if stage_status(state, target) == StageStatus.BLOCKED:
        raise Refused(f"stage {target} is blocked", remedy="name an earlier stage, or let the owner unblock it")
    if target == 5 and any(p["status"] == PhaseStatus.BLOCKED for p in phases(state).values()):
        raise Refused("a phase is blocked", remedy="roll back to stage 3 or 4")
    failed = args.get("failed_phase")
    if failed is not None and failed not in phases(state):
        raise Refused(f"{failed} is not in the plan", remedy=_planned(state))


def _in_stage(number: int) -> Condition:
    def condition(state: State, args: Arguments, by: str) -> None:
        if args.get("stage", number) != number:
            raise Refused(f"this action belongs to stage {number}", remedy=f"write --stage {number}")
        if not in_progress(state, number):
            raise Refused(
                f"stage {number} is not in progress",
                remedy=f"the current stage is {state['current_stage']} ({stage_status(state, state['current_stage'])})",
            )

    return condition


CONDITIONS["in_stage_4"] = _in_stage(4)
CONDITIONS["in_stage_5"] = _in_stage(5)


@_condition
def _stage_5_or_later(state: State, args: Arguments, by: str) -> None:
    if state["current_stage"] < 5:
        raise Refused("construction has not begun", remedy="phases open with stage 5")
    current = stage_status(state, state["current_stage"])
    if current in (StageStatus.FAILED, StageStatus.BLOCKED) and state["current_stage"] == 5:
        raise Refused(f"stage 5 is {current}", remedy="run start_stage or rollback_to_stage")
    if state["current_stage"] > 5 and stage_status(state, 5) == StageStatus.BLOCKED:
        raise Refused("stage 5 is blocked", remedy="roll back to stage 3 or 4")


@_condition
def _plan_open(state: State, args: Arguments, by: str) -> None:
    if state["plan"] is not None:
        raise Refused(
            f"the plan is frozen with N = {state['plan']['module_count']}",
            remedy="fail_stage 4 or roll back to stage 3 to change it",
        )


# -- phases -----------------------------------------------------------------------------------------------


def _planned(state: State) -> str:
    count = module_count(state)
    return f"the plan has M1..M{count}" if count else "run freeze_plan in stage 4"


@_condition
def _phase_planned(state: State, args: Arguments, by: str) -> None:
    if args["phase"] not in phases(state):
        raise Refused(f"{args['phase']} is not in the plan", remedy=_planned(state))


@_condition
def _phase_startable(state: State, args: Arguments, by: str) -> None:
    name, table = args["phase"], phases(state)
    for earlier in range(1, phase_number(name)):
        if table[phase_name(earlier)]["status"] != PhaseStatus.VERIFIED:
            raise Refused(
                f"{name} before {phase_name(earlier)}, which is {table[phase_name(earlier)]['status']}",
                remedy=f"verify {phase_name(earlier)} first",
            )
    status = table[name]["status"]
    if status == PhaseStatus.BLOCKED:
        raise Refused(f"{name} is blocked after {table[name]['cycles']} cycles", remedy="roll back to stage 3 or 4")
    if status == PhaseStatus.VERIFIED:
        raise Refused(f"{name} is verified and frozen", remedy="use reopen_phase to change it")
    if status != PhaseStatus.PENDING:
        raise Refused(f"{name} is {status} already", remedy="go on with it")


def _phase_in(name: str, statuses: tuple[PhaseStatus, ...], hint: dict[str, str]) -> Condition:
    def condition(state: State, args: Arguments, by: str) -> None:
        phase = phases(state)[args["phase"]]
        status = phase["status"]
        if status not in statuses:
            raise Refused(f"{args['phase']} is {status}", remedy=hint.get(status, hint["else"]))
        attempt = args.get("attempt")
        if attempt is not None and attempt != phase["attempt"]:
            raise _stale(state, args["phase"], attempt)

    CONDITIONS[name] = condition
    return condition


_AFTER = {
    "pending": "run start_phase first",
    "in_progress": "run submit_for_verify first",
    "in_debug": "patch it and run submit_for_verify",
    "verified": "it is frozen; use reopen_phase to change it",
    "blocked": "roll back to stage 3 or 4",
}
_phase_in(
    "phase_submittable", _SUBMITTABLE, {**_AFTER, "awaiting_verify": "wait for its verdict", "else": "run start_phase first"}
)
phase_awaits = _phase_in("phase_awaits", (PhaseStatus.AWAITING_VERIFY,), {**_AFTER, "else": ""})


def _stale(state: State, phase: str, attempt: str) -> Refused:
    """An attempt that is not the phase's open one: say which is, or which attempts of other phases are."""
    waiting = {name: row["attempt"] for name, row in sorted(phases(state).items()) if row["attempt"]}
    others = ", ".join(str(open_) for open_ in waiting.values())
    remedy = f"the open attempt is {waiting.get(phase) or others}" if waiting else "no attempt is open"
    shown = attempt if len(attempt) <= 40 else attempt[:37] + "..."
    return Refused(
        f"attempt {shown} of {phase} is stale" if phase in phases(state) else f"there is no attempt {shown}", remedy=remedy
    )


def attempt_phase(state: State, attempt: str) -> str | None:
    """Return the phase whose open attempt this is."""
    for name, phase in phases(state).items():
        if phase["attempt"] == attempt:
            return name
    return None


@_condition
def _attempt_open(state: State, args: Arguments, by: str) -> None:
    attempt = args["attempt"]
    name = attempt_phase(state, attempt)
    expected = args.get("phase") or attempt.split(".", 1)[0]
    if name is None:
        raise _stale(state, expected, attempt)
    if args.get("phase", name) != name:
        raise Refused(f"attempt {attempt} belongs to {name}, not to {args['phase']}", remedy=f"name {name}")
    phase_awaits(state, {"phase": name, "attempt": attempt}, by)


@_condition
def _category_known(state: State, args: Arguments, by: str) -> None:
    category = args.get("failure_category")
    if category is not None and category not in {str(word) for word in FailureCategory}:
        words = ", ".join(FailureCategory)
        raise Refused(f"{category!r} is no failure category", remedy=f"use one of {words}")


@_condition
def _phase_reopenable(state: State, args: Arguments, by: str) -> None:
    phase = phases(state)[args["phase"]]
    if phase["status"] == PhaseStatus.PENDING:
        raise Refused(f"{args['phase']} is pending", remedy="there is nothing to reopen")
    if phase["status"] == PhaseStatus.BLOCKED:
        raise Refused(f"{args['phase']} is blocked", remedy="roll back to stage 3 or 4")


@_condition
def _all_verified(state: State, args: Arguments, by: str) -> None:
    if not all_verified(state):
        unfinished = [name for name in phase_names(state) if phases(state)[name]["status"] != PhaseStatus.VERIFIED]
        first = unfinished[0] if unfinished else None
        waiting = f"{first} is {phases(state)[first]['status']}" if first else "there are no phases"
        raise Refused(f"not every phase is verified: {waiting}", remedy="verify M1..MN in order")


@_condition
def _staged_only(state: State, args: Arguments, by: str) -> None:
    if not is_staged(state):
        raise Refused("the plan has a single module", remedy="complete stage 5 directly")


@_condition
def _composition_passed(state: State, args: Arguments, by: str) -> None:
    if not state["composition"]:
        raise Refused("the composition is not recorded", remedy="run record_composition first")


# -- artefacts, roles, owner ------------------------------------------------------------------------------


@_condition
def _artifact_freezable(state: State, args: Arguments, by: str) -> None:
    row = workflow().artifacts.get(args["name"])
    if row is None:
        raise Refused(f"{args['name'][:40]!r} is no artefact", remedy=f"use one of {', '.join(workflow().artifacts)}")
    if row.stage > state["current_stage"]:
        raise Refused(f"{row.name} belongs to stage {row.stage}", remedy=f"the current stage is {state['current_stage']}")
    if row.name in ("impl_py", "test_py", "readme_md") and not state["artifact_hashes"].get(row.name):
        raise Refused(f"{row.name} is frozen by its verdict", remedy="use submit_for_verify and complete_stage")


@_condition
def _dispatchable(state: State, args: Arguments, by: str) -> None:
    row = workflow().dispatch.get(args["role"])
    if row is None:
        raise Refused(f"{args['role']} is not dispatched", remedy=f"name one of {', '.join(workflow().dispatch)}")
    stage = state["current_stage"]
    if stage not in row.stages or not in_progress(state, stage):
        raise Refused(
            f"{args['role']} has no work in stage {stage} ({stage_status(state, stage)})",
            remedy=f"it works in stage {', '.join(map(str, row.stages))}",
        )
    name = args.get("phase")
    if name is None:
        if args["role"] == Role.CODER:
            raise Refused("the coder is dispatched for one phase", remedy="add --phase M_k")
        return
    _phase_planned(state, args, by)
    status = phases(state)[name]["status"]
    if row.phase_status and status not in row.phase_status:
        raise Refused(
            f"{args['role']} has no work on {name}, which is {status}",
            remedy=f"it works on a phase that is {' or '.join(row.phase_status)}",
        )


@_condition
def _is_blocked(state: State, args: Arguments, by: str) -> None:
    phase, stage = args.get("phase"), args.get("stage")
    if (phase is None) == (stage is None):
        raise Refused("unblock takes a stage or a phase", remedy="add either --stage N or --phase M_k")
    if phase is not None:
        _phase_planned(state, args, by)
        if phases(state)[phase]["status"] != PhaseStatus.BLOCKED:
            raise Refused(f"{phase} is not blocked", remedy="there is nothing to unblock")
    elif stage is not None and state["stage_status"].get(str(stage)) != StageStatus.BLOCKED:
        raise Refused(f"stage {stage} is not blocked", remedy="there is nothing to unblock")
