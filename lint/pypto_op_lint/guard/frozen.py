"""What the state machine has closed: read from the operator's state file, which may be anything.

The state file belongs to the state machine. The guard reads three facts of it and believes none of their
types: which stage is current, which phase is active, which files are frozen.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pypto_op.errors import ContractError
from pypto_op.hashing import open_regular, sha256_file
from pypto_op.workspace import STATE_FILE, suffix_phase
from pypto_op_lint.guard.roles import FrozenRule, load_roles, match_suffix

_MAX_STATE_BYTES = 4 << 20


@dataclass(frozen=True)
class OpState:
    """The three facts. `stage` and `active_phase` are None where the state does not say them."""

    stage: int | None = None
    active_phase: int | None = None
    completed_stages: frozenset[int] = frozenset()
    verified_phases: frozenset[int] = frozenset()
    hashes: dict[str, str] = field(default_factory=dict)
    """Frozen files by relative path, with the sha256 that was recorded (empty when it was not)."""

    def frozen_because(self, relative: str, op: str) -> str | None:
        """Return why this file is frozen ("stage 3 is completed"), or None."""
        for rule in load_roles().frozen:
            hit, suffix = match_suffix(rule.files, relative, op)
            if hit and (reason := self._rule_holds(rule, suffix)):
                return reason
        if relative in self.hashes:
            return "the state file records its hash"
        return None

    def _rule_holds(self, rule: FrozenRule, suffix: str | None) -> str | None:
        if rule.stage is not None:
            return f"stage {rule.stage} is completed" if rule.stage in self.completed_stages else None
        phase = _phase_of(suffix)
        return f"phase M{phase} is verified" if phase in self.verified_phases else None


def read_state(op_dir: Path) -> OpState:
    """Return what the state file of `op_dir` says; an empty OpState where there is none that makes sense."""
    try:
        with open_regular(op_dir / STATE_FILE) as file:
            raw = json.loads(file.read(_MAX_STATE_BYTES))
    except (OSError, ValueError, RecursionError):
        return OpState()
    if not isinstance(raw, dict):
        return OpState()
    phases = _dict(_dict(raw, "stage5_phases"), "phase_status")
    stage = raw.get("current_stage")
    active = _dict(raw, "stage5_phases").get("active_phase")
    return OpState(
        stage=stage if isinstance(stage, int) and not isinstance(stage, bool) else None,
        active_phase=_phase_number(active),
        completed_stages=frozenset(
            int(n) for n, status in _dict(raw, "stage_status").items() if status == "completed" and n.isdecimal()
        ),
        verified_phases=frozenset(
            k
            for name, phase in phases.items()
            if isinstance(phase, dict) and phase.get("status") == "verified" and (k := _phase_number(name))
        ),
        hashes=_hashes(_dict(raw, "artifact_hashes")),
    )


def changed_frozen_file(op_dir: Path, relative: str, state: OpState) -> bool:
    """Say whether a frozen file no longer has the bytes whose hash the state file records."""
    recorded = state.hashes.get(relative, "")
    if len(recorded) != 64:
        return False
    try:
        return sha256_file(op_dir / relative) != recorded
    except ContractError:
        return True


def _dict(raw: dict[str, Any], key: str) -> dict[str, Any]:
    value = raw.get(key)
    return {k: v for k, v in value.items() if isinstance(k, str)} if isinstance(value, dict) else {}


def _hashes(table: dict[str, Any]) -> dict[str, str]:
    """Return path -> sha256 for the entries that name their path; other shapes say nothing about a path."""
    found = {}
    for entry in table.values():
        if isinstance(entry, dict) and isinstance(entry.get("path"), str):
            found[entry["path"]] = str(entry.get("sha256", ""))
    return found


def _phase_number(name: object) -> int | None:
    digits = name.lstrip("M_") if isinstance(name, str) else ""
    return int(digits) if digits.isdecimal() and len(digits) <= 4 else None


def _phase_of(suffix: str | None) -> int | None:
    try:
        return suffix_phase(suffix or "")
    except ContractError:
        return None
