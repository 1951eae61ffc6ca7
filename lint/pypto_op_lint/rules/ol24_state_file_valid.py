"""OL24: the state file is one."""

import json
from collections.abc import Iterator
from typing import Any

from pypto_op.vocabulary import Artifact, Severity, StageStatus
from pypto_op_lint.findings import WARN
from pypto_op_lint.rule import Invalid, Rule, Valid

_GOOD: dict[str, Any] = {
    "schema_version": "2.0",
    "operator_name": "demo",
    "max_stage": 7,
    "current_stage": 5,
    "stage_status": {str(n): "completed" if n < 5 else "pending" for n in range(1, 8)},
    "stage5_phases": {"active_phase": None, "phase_status": {}},
    "artifact_hashes": {},
    "rollback_history": [],
}
_STATUSES = [str(status) for status in StageStatus]
_OPTIONAL = {"rollback_history": list, "artifact_hashes": dict, "stage_retry_count": dict}
_REMEDY = "let the state tool write it: `pypto-op state status`, `pypto-op state replay`"


def _with(**changes: Any) -> str:
    return json.dumps({k: v for k, v in {**_GOOD, **changes}.items() if v is not ...})


class StateFileValid(Rule):
    """The state file is not JSON, lacks a field, or holds one of the wrong type.

    What it does:
        Checks operator_name (text), current_stage (1 to 7), stage_status (a mapping), and the types of stage5_phases,
        rollback_history, artifact_hashes and stage_retry_count where they occur. A missing max_stage is a warning.

    Why:
        Gates read this file; one that was edited by hand lies to all of them.

    Example:
        {"current_stage": "five"}

    Use instead:
        {"operator_name": "softmax", "current_stage": 5, "stage_status": {"5": "in_progress"}}

    Known limits:
        Whether it tells the truth is audited from the journal: `pypto-op state audit`.
    """

    id = "OL24"
    name = "state-file-valid"
    severity = Severity.S1
    artifacts = frozenset({Artifact.STATE})
    MESSAGE = "the state file is not valid"
    FIX_HINT = _REMEDY

    VALID = [Valid(_with(), artifact=Artifact.STATE), Valid(_with(stage5_phases=...), artifact=Artifact.STATE)]
    INVALID = [
        Invalid("[]", artifact=Artifact.STATE),
        Invalid("{not json", artifact=Artifact.STATE),
        Invalid(_with(operator_name=...), artifact=Artifact.STATE),
        Invalid(_with(current_stage="5"), artifact=Artifact.STATE),
        Invalid(_with(current_stage=True), artifact=Artifact.STATE),
        Invalid(_with(stage_status=[]), artifact=Artifact.STATE),
        Invalid(_with(stage5_phases={"active_phase": None}), artifact=Artifact.STATE),
        Invalid(_with(rollback_history={}), artifact=Artifact.STATE),
        Invalid(_with(max_stage=...), artifact=Artifact.STATE, status="WARN"),
    ]

    def check_file(self) -> None:
        """Check fields and types."""
        try:
            data = json.loads(self.unit.text)
        except (ValueError, RecursionError) as error:
            self.report(getattr(error, "lineno", 1), f"the state file is not JSON ({' '.join(str(error).split())[:80]})")
            return
        if not isinstance(data, dict):
            self.report(1, f"the state file holds a {type(data).__name__}, not an object")
            return
        for problem in _problems(data):
            self.report(1, problem)
        if "max_stage" not in data:
            self.report(1, "max_stage is missing", status=WARN)


def _problems(data: dict[str, Any]) -> Iterator[str]:
    if not isinstance(data.get("operator_name"), str) or not data["operator_name"]:
        yield "operator_name is missing or no text"
    stage = data.get("current_stage")
    if not isinstance(stage, int) or isinstance(stage, bool) or not 1 <= stage <= 7:
        yield "current_stage is missing or no stage from 1 to 7"
    statuses = data.get("stage_status")
    if not isinstance(statuses, dict):
        yield "stage_status is missing or no mapping"
    else:
        for number, word in statuses.items():
            if word not in _STATUSES:
                yield f"stage_status[{number!r}] is {word!r}, not one of {', '.join(_STATUSES)}"
    phases = data.get("stage5_phases", {"phase_status": {}})
    if not isinstance(phases, dict) or not isinstance(phases.get("phase_status"), dict):
        yield "stage5_phases has no mapping phase_status"
    for name, kind in _OPTIONAL.items():
        if name in data and not isinstance(data[name], kind):
            yield f"{name} is a {type(data[name]).__name__}, not a {kind.__name__}"
