"""How far a run came: what the state machine says, never what an agent says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from pypto_op.errors import ContractError
from pypto_op.workflow import workflow
from pypto_op.workspace import OpWorkspace

_REMINDERS = 2
"""How often an agent that ends too early is told so without a step of the state in between."""


@dataclass(frozen=True)
class Asked:
    """What a run has to bring about."""

    workspace: Path  # the folder that holds `custom/`
    op: str | None  # the operator's name; None takes the one whose state moved last
    since: float  # when the run began (seconds since the epoch): a state that moved for the last time before is none of its work
    targeted: bool = False  # whether a time is to be reached, so that stage 7 belongs to it


@dataclass(frozen=True)
class Standing:
    """Where an operator stands."""

    op_dir: Path | None  # its folder; None where the run made no operator
    finished: bool  # every stage that was asked for is complete, and every frozen file is as it was
    said: str  # the same in words, with what could come next
    steps: int = 0  # how many steps the state has taken


def standing(asked: Asked) -> Standing:
    """Ask the state machine how far the operator is."""
    root = asked.workspace / "custom" / asked.op if asked.op else _moved_last(asked.workspace, asked.since)
    if root is None or not root.is_dir():
        return Standing(None, False, "no operator was begun")
    from pypto_op.state import service

    try:
        status = service.status(root)
    except ContractError as error:
        return Standing(root, False, error.one_line())
    if status["current_stage"] is None:
        return Standing(root, False, f"{root.name}: no stage was begun")
    stages = {int(number): word for number, word in status["stage_status"].items() if int(number) <= status["max_stage"]}
    missing = [f"stage {number} is {word}" for number, word in stages.items() if word != "completed"]
    problems = [*status["problems"], *(missing[:1] or _not_what_was_asked(asked, root, status))]
    if not problems:
        return Standing(root, True, f"{root.name}: every stage is complete", status["sequence"])
    following = "; ".join(_action(row) for row in status["next"][:4])
    return Standing(root, False, f"{root.name}: {'; '.join(problems)}; next: {following}", status["sequence"])


def _not_what_was_asked(asked: Asked, root: Path, status: Mapping[str, Any]) -> list[str]:
    """Say why a complete state is no answer to this run's request: it is evidence of another one."""
    from pypto_op.state import store

    state = store.load(OpWorkspace.at(root)).state
    if state and datetime.fromisoformat(state["last_updated"]).timestamp() < asked.since:
        return ["every stage was complete before this run began, and nothing was done since"]
    if asked.targeted and status["max_stage"] < workflow().limits.max_stage:
        return [f"a time is to be reached, and the state was begun without stage {workflow().limits.max_stage}"]
    return []


def _action(row: Any) -> str:
    return str(row.get("call") or row.get("action") or row) if isinstance(row, dict) else str(row)


def _moved_last(workspace: Path, since: float) -> Path | None:
    found = [OpWorkspace.at(path.parent) for path in (workspace / "custom").glob("*/.orchestrator_state.json")]
    moved = [(ws.state.stat().st_mtime, ws.root) for ws in found if ws.state.stat().st_mtime >= since]
    return max(moved, default=(0.0, None))[1]


@dataclass
class Insistence:
    """Tells the orchestrator, when it ends its turn, what the state says; lets it end when it moves nothing any more."""

    asked: Asked
    _steps: int = -1
    _told: int = 0

    def more(self, text: str) -> str | None:
        """Return what to say to an orchestrator that ends too early, or None to let it end."""
        now = standing(self.asked)
        if now.finished:
            return None
        if now.steps != self._steps:
            self._steps, self._told = now.steps, 0
        if self._told >= _REMINDERS:
            return None
        self._told += 1
        return (
            f"The operator is not finished. The state machine says: {now.said}. Only its records count. "
            "Go on with the next step; if only a person can go on, say in one line what is missing, and end."
        )
