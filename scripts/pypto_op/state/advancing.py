"""`advance`: every step that is due and needs nobody's work, one transition after the other; then who is due, and with what task.

Each transition is the machine's own, with its conditions and gates. With one module a call goes on to the end of a row of
`workflow.json`'s way; with more it takes one step, since other agents stand between them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pypto_op.errors import ContractError, InfraError, PyptoOpError, Refused
from pypto_op.state import service, store
from pypto_op.state.model import State, all_verified, is_staged, phase_names, phases
from pypto_op.vocabulary import PhaseStatus, Role, StageStatus
from pypto_op.workflow import workflow
from pypto_op.workspace import OpWorkspace, to_run

ADVANCE = "advance"
_MOST_STEPS = 8


@dataclass(frozen=True)
class Step:
    """One transition: the action and its arguments."""

    action: str
    args: dict[str, Any]

    def __str__(self) -> str:
        return " ".join([self.action, *(str(value) for name, value in self.args.items() if name in ("stage", "phase"))])


def advance(op_dir: Path | str, *, modes: str | None = None, **caller: Any) -> dict[str, Any]:
    """Take the steps that are due.

    Args:
        modes: for `freeze_plan`.
        **caller: token, declared and person, as `service.transition` takes them.

    Returns:
        What the last transition returned, with `action` "advance", `done` (the steps taken) and `due` (the dispatch that is
        next, or None).

    Raises:
        Refused, ContractError, InfraError: as `service.transition`; the message names the steps that were taken before.
    """
    ws = OpWorkspace.at(op_dir)
    done: list[str] = []
    result: dict[str, Any] = {}
    while len(done) < _MOST_STEPS:
        state = store.load(ws).state
        step = _next(ws, _begun(state), done)
        if step is None:
            break
        if step.action == "freeze_plan" and modes:
            step.args["modes"] = modes
        try:
            result |= service.transition(op_dir, step.action, **step.args, **caller)
        except PyptoOpError as error:
            raise _after(done, step, error) from None
        done.append(str(step))
        if _ends_row(step) or is_staged(_begun(store.load(ws).state)):
            break
    if not done:
        raise Refused("no step is due", file=ws.root, remedy=to_run("state status --op-dir", ws.root))
    return {**result, "action": ADVANCE, "done": done, "due": due(ws)}


def due(ws: OpWorkspace) -> dict[str, str] | None:
    """Return the dispatch that is next: `subagent_type`, and `prompt` in the dispatch format; None where no agent is.

    Raises:
        ContractError: the state is broken.
    """
    state = store.load(ws).state
    if state is None:
        return None
    agent, task, phase = _who(ws, state)
    if not agent:
        return None
    attempt = phases(state)[phase]["attempt"] if phase else None
    lines = [f"task: {task}", f"operator: {_shown(ws)}", f"phase: {phase or '-'}", f"attempt: {attempt or '-'}", "message: -"]
    return {"subagent_type": agent, "prompt": "\n".join(lines)}


def _begun(state: State | None) -> State:
    if state is None:
        raise Refused("no state yet", remedy="run init")
    return state


def _after(done: list[str], step: Step, error: PyptoOpError) -> PyptoOpError:
    """Return the error with what was done before it: those steps stand."""
    problem = f"{step} is refused: {error.problem}" if isinstance(error, Refused) else f"{step}: {error.problem}"
    if done:
        problem = f"{', '.join(done)} done; {problem}"
    kind = Refused if isinstance(error, Refused) else InfraError if isinstance(error, InfraError) else ContractError
    return kind(problem, file=error.file, where=error.where, remedy=error.remedy)


# -- which step ------------------------------------------------------------------------------------------------------


def _next(ws: OpWorkspace, state: State, done: list[str]) -> Step | None:
    """Return the step that is due, or None where an agent is, or nothing is left."""
    stage = state["current_stage"]
    status = state["stage_status"][str(stage)]
    if status != StageStatus.IN_PROGRESS:
        if done or status == StageStatus.COMPLETED:
            return None
        raise Refused(f"stage {stage} is {status}", remedy=f"see `pypto-op state status --op-dir {_shown(ws)}`")
    if stage in (1, 2, 3):
        return None if done and not _planned_as_one(ws) else Step("complete_stage", {"stage": stage})
    if stage == 4:
        return _of_stage_4(ws, state, done)
    if stage == 5:
        return _of_stage_5(state, done)
    return Step("complete_stage", {"stage": stage})


def _of_stage_4(ws: OpWorkspace, state: State, done: list[str]) -> Step:
    if state["plan"] is not None:
        return Step("complete_stage", {"stage": 4})
    handed_over = not done and ws.test_inputs.is_file()
    return Step("freeze_plan", {}) if handed_over or "freeze_plan" in done else Step("submit_design", {})


def _of_stage_5(state: State, done: list[str]) -> Step | None:
    for name in phase_names(state):
        phase = phases(state)[name]
        status = phase["status"]
        if status == PhaseStatus.PENDING:
            return Step("start_phase", {"phase": name})
        if status in (PhaseStatus.IN_PROGRESS, PhaseStatus.IN_DEBUG):
            return None if done else Step("submit_for_verify", {"phase": name})
        if status == PhaseStatus.AWAITING_VERIFY:
            return Step("record_verdict", {"phase": name, "attempt": phase["attempt"]})
        if status == PhaseStatus.BLOCKED:
            raise Refused(
                f"{name} is blocked after {phase['cycles']} cycles", remedy="roll back to stage 3 or 4, or ask the user"
            )
    if is_staged(state) and not state["composition"]:
        return Step("record_composition", {})
    if is_staged(state) and not state["integration"]:
        return Step("record_integration", {})
    return Step("complete_stage", {"stage": 5})


def _ends_row(step: Step) -> bool:
    """Whether an agent is due after it: it is the last of its row, and a verdict that is no PASS ends its row, too."""
    last = {row.then[-1] for row in workflow().way}
    return str(step) in last or step.action in {words.split()[0] for words in last} - {"complete_stage"}


def _planned_as_one(ws: OpWorkspace) -> bool:
    """Whether the planner has designed one module already: then nobody stands between stages 1 and 4."""
    from pypto_op.documents import design

    try:
        return design.load(ws.design).module_count == 1
    except ContractError:
        return False


# -- who is due ------------------------------------------------------------------------------------------------------

_OF_STAGE = {
    1: (Role.PLANNER, "plan"),
    2: (Role.MATHEMATICIAN, "golden"),
    3: (Role.ARCHITECT, "design"),
    7: (Role.OPTIMIZER, "tune"),
}
_OF_PHASE = {
    PhaseStatus.IN_PROGRESS: (Role.CODER, "kernel"),
    PhaseStatus.AWAITING_VERIFY: (Role.VERIFIER, "verdict"),
    PhaseStatus.IN_DEBUG: (Role.DEBUGGER, "debug"),
}


def _who(ws: OpWorkspace, state: State) -> tuple[str, str, str]:
    """Return agent, task and phase of the dispatch that is next; empty texts where no agent is."""
    stage = state["current_stage"]
    if state["stage_status"][str(stage)] != StageStatus.IN_PROGRESS:
        return "", "", ""
    if stage in _OF_STAGE:
        role, task = _OF_STAGE[stage]
        return str(role), task, ""
    if stage == 4:
        if state["plan"] is not None:
            return "", "", ""
        role, task = (Role.VERIFIER, "harness") if ws.interfaces.is_file() else (Role.DESIGNER, "interfaces")
        return str(role), task, ""
    return next(_phases_due(state), ("", "", "")) if stage == 5 else ("", "", "")


def _phases_due(state: State) -> Iterator[tuple[str, str, str]]:
    for name in phase_names(state):
        status = phases(state)[name]["status"]
        if status in _OF_PHASE:
            role, task = _OF_PHASE[PhaseStatus(status)]
            yield str(role), "phase" if task == "verdict" and is_staged(state) else task, name
    if is_staged(state) and all_verified(state):
        if not state["composition"]:
            yield str(Role.VERIFIER), "compose", ""
        elif not state["integration"]:
            yield str(Role.CODER), "cleanup", ""


def _shown(ws: OpWorkspace) -> str:
    return "/".join(ws.root.parts[-2:])
