"""The workflow as data: `workflow.json` says what each action takes, needs and checks; this reads it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

TABLE = Path(__file__).with_name("workflow.json")


@dataclass(frozen=True)
class ArtifactRow:
    """A file that a stage owns; `at` is the property of `OpWorkspace` that says where it lies."""

    name: str
    at: str
    stage: int


@dataclass(frozen=True)
class StageRow:
    """One stage: who owns it, which files must be there at its end, which are frozen then."""

    number: int
    name: str
    owner: str
    needs: tuple[str, ...] = ()
    needs_staged: tuple[str, ...] = ()
    freezes: tuple[str, ...] = ()
    releases: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    levels: tuple[str, ...] = ()
    """Suite levels that the stage's evidence must cover; empty for a stage without evidence."""


@dataclass(frozen=True)
class ActionRow:
    """One action: its arguments, the preconditions on the state, and the gates that look at files."""

    name: str
    summary: str
    args: dict[str, str] = field(default_factory=dict)
    requires: tuple[str, ...] = ()
    gates: tuple[str, ...] = ()
    owner_only: bool = False


@dataclass(frozen=True)
class Limits:
    """Where retrying ends."""

    max_stage: int
    max_modules: int
    cycles_per_phase: int
    retries_per_stage: int
    infra_retries_per_attempt: int


@dataclass(frozen=True)
class DispatchRow:
    """When a role may be sent to work: in these stages, and with a phase in one of these statuses."""

    stages: tuple[int, ...]
    phase_status: tuple[str, ...] = ()


@dataclass(frozen=True)
class WayRow:
    """One step of an operator of one module: who works on which task, and the transitions that follow."""

    agent: str
    task: str
    then: tuple[str, ...]


@dataclass(frozen=True)
class Workflow:
    """The whole table."""

    limits: Limits
    artifacts: dict[str, ArtifactRow]
    stages: dict[int, StageRow]
    actions: dict[str, ActionRow]
    dispatch: dict[str, DispatchRow]
    phase_levels: tuple[str, ...]
    way: tuple[WayRow, ...]


def _tuples(row: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in row.items()}


@lru_cache(maxsize=1)
def workflow() -> Workflow:
    """Return the table; `schemas/workflow.schema.json` describes it and a test checks it."""
    raw = json.loads(TABLE.read_text(encoding="utf-8"))
    return Workflow(
        limits=Limits(**raw["limits"]),
        artifacts={name: ArtifactRow(name, **row) for name, row in raw["artifacts"].items()},
        stages={int(n): StageRow(int(n), **_tuples(row)) for n, row in raw["stages"].items()},
        actions={name: ActionRow(name, **_tuples(row)) for name, row in raw["actions"].items()},
        dispatch={role: DispatchRow(**_tuples(row)) for role, row in raw["dispatch"].items()},
        phase_levels=tuple(raw["phase_levels"]),
        way=tuple(WayRow(**_tuples(row)) for row in raw["way"]),
    )
