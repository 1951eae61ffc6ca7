"""OL14: the final end-to-end run comes after construction."""

import json
from typing import Any

from pypto_op.vocabulary import Artifact, LintEvent, Severity
from pypto_op_lint.documents import mapping
from pypto_op_lint.examples import impl
from pypto_op_lint.rule import Invalid, Rule, Valid

_GATE: dict[str, Any] = {"event": LintEvent.COMPLETE_STAGE, "stage": 6}


def _state(stage5: str) -> str:
    return json.dumps({"operator_name": "demo", "current_stage": 6, "stage_status": {"5": stage5, "6": "in_progress"}})


class ConstructionBeforeE2e(Rule):
    """Stage 6 is being completed although stage 5 is not.

    What it does:
        When stage 6 is completed, reads the state file and asks for stage 5 to be `completed`.

    Why:
        An end-to-end verdict on a kernel whose phases are open says nothing about what will be shipped.

    Example:
        {"current_stage": 6, "stage_status": {"5": "in_progress"}}

    Use instead:
        {"current_stage": 6, "stage_status": {"5": "completed"}}

    Known limits:
        The state machine refuses this too; the rule holds where only the linter is run. An operator without a state file is
        not looked at.
    """

    id = "OL14"
    name = "construction-before-e2e"
    severity = Severity.S1
    artifacts = frozenset({Artifact.STATE})
    stages = frozenset({6})
    MESSAGE = "stage 5 is not completed"
    FIX_HINT = "complete stage 5 first: `pypto-op state complete_stage --stage 5`"

    VALID = [Valid(impl(), files={".orchestrator_state.json": _state("completed")}, **_GATE), Valid(impl(), **_GATE)]
    INVALID = [
        Invalid(impl(), files={".orchestrator_state.json": _state("in_progress")}, **_GATE),
        Invalid(impl(), files={".orchestrator_state.json": "[]"}, **_GATE),
        Invalid(impl(), files={".orchestrator_state.json": '{"stage_status": []}'}, **_GATE),
    ]

    def check_operator(self) -> None:
        """Read the state."""
        unit = self.files.existing(self.files.ws.state)
        if unit is None:
            return
        stages = (mapping(unit) or {}).get("stage_status")
        status = stages.get("5") if isinstance(stages, dict) else None
        if status != "completed":
            self.report(None, f"stage 5 is {status!r}, not completed", file=unit.shown)
