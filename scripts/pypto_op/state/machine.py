"""The state machine: a pure function from (state, action, arguments, facts) to a new state, or a refusal.

Nothing here touches a file, a clock or a process. `service` gathers the facts (what the gates found, the
hashes that the tool computed, the judge's verdict), calls `step`, and writes what comes back. The journal
keeps action, arguments and facts, so replaying it through `step` rebuilds the state.

Preconditions are in `conditions`, effects in `effects`; `workflow.json` says which action has which.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from pypto_op.errors import Refused
from pypto_op.state.conditions import CONDITIONS
from pypto_op.state.effects import EFFECTS
from pypto_op.state.facts import Arguments, Facts
from pypto_op.state.model import State, phase_names, phases
from pypto_op.workflow import ActionRow, workflow


def action_row(action: str) -> ActionRow:
    """Return the table's row of an action.

    Raises:
        Refused: there is no such action.
    """
    row = workflow().actions.get(action)
    if row is None:
        shown = action if len(action) <= 40 else action[:37] + "..."
        raise Refused(f"unknown action {shown!r}", remedy=f"use one of {', '.join(workflow().actions)}")
    return row


def check(state: State | None, action: str, args: Arguments, *, by: str) -> None:
    """Refuse an action that the state alone rules out, before anybody looks at a file.

    Args:
        state: the state, None before `init`.
        action: a name of `workflow.json`.
        args: arguments as `arguments.parse` returns them.
        by: `orchestrator`, `owner`, or `person` (an owner who confirmed at a terminal).

    Raises:
        Refused: with the reason and the remedy.
    """
    row = action_row(action)
    if state is None and action != "init":
        raise Refused("the operator has no state yet", remedy="run `pypto-op state init --op-dir OP_DIR`")
    if row.owner_only and by != "person":
        raise Refused(f"only a person may call {action}", remedy="ask the owner to run it in a terminal and to confirm it")
    for name in row.requires:
        CONDITIONS[name](state, args, by)


def step(state: State | None, action: str, args: Arguments, facts: Facts, *, in_place: bool = False) -> State:
    """Return the state after an action.

    Args:
        state: the state before; untouched unless `in_place`.
        action: a name of `workflow.json`.
        args: arguments as `arguments.parse` returns them.
        facts: what the tool found out; `refusals` of a gate make the whole step a refusal.
        in_place: reuse `state` for the result (replay of long journals).

    Raises:
        Refused: with the reason and the remedy; the state is unchanged.
    """
    check(state, action, args, by=facts["by"])
    for refusal in facts.get("refusals", ()):
        raise Refused(**refusal)
    draft = state if state is None or in_place else deepcopy(state)
    draft = EFFECTS[action](draft, args, facts)
    draft["last_updated"] = facts["time"]
    return draft


def legal_actions(state: State | None, after: str = "") -> list[str]:
    """Return the actions that could be taken next, each with its stage or phase; those that lead on come first.

    Args:
        state: where the operator stands.
        after: the action that led there; what it did just now, or an earlier one did for good, is not offered again.
    """
    found = []
    rows = workflow().actions.values()
    for row in sorted(rows, key=lambda row: row.name.startswith(_BACKWARD)):
        if row.owner_only or _is_done(state, row.name, after):
            continue
        for args, label in _instances(state, row):
            try:
                check(state, row.name, args, by="orchestrator")
            except Refused:
                continue
            found.append(f"{row.name}{label}")
    return found


def _is_done(state: State | None, action: str, after: str) -> bool:
    """Whether repeating an action would be allowed and change nothing."""
    if state is None:
        return False
    done = {
        "submit_design": after == "submit_design" or state["plan"] is not None,  # freeze_plan has the same gates
        "record_composition": bool(state["composition"]),
        "record_integration": bool(state["integration"]),
    }
    return done.get(action, False)


_BACKWARD = ("fail_", "reopen_")
_SHORT = ("rollback_to_stage", "record_artifact_hash", "dispatch")  # open nearly always; a list would be noise


def _instances(state: State | None, row: ActionRow) -> list[tuple[Arguments, str]]:
    if row.name in _SHORT or (state is None) != (row.name == "init"):
        return []  # a finished operator may be begun anew, but that is no next step of it
    if state is None:
        return [({"stage": 1}, "")]
    if row.name == "record_verdict":
        open_attempts = [phase["attempt"] for phase in phases(state).values() if phase["attempt"]]
        return [({"attempt": attempt}, f" --attempt {attempt}") for attempt in open_attempts]
    filler: dict[str, Any] = {"reason": "?", "failure_category": "other"}
    others: Arguments = {k: v for k, v in filler.items() if k in row.args}  # type: ignore[assignment]
    if row.args.get("phase") == "required":
        return [({**others, "phase": name}, f" --phase {name}") for name in phase_names(state)]
    if row.args.get("stage") == "required":
        stage = state["current_stage"]
        return [({**others, "stage": stage}, f" --stage {stage}")]
    return [(others, "")]
