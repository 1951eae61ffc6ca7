"""What every gate sees, the registry of the gates, and how a file is frozen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pypto_op.hashing import sha256_file
from pypto_op.proof.closure import frozen_names
from pypto_op.state.facts import Arguments, Facts
from pypto_op.state.model import Frozen, State
from pypto_op.workflow import workflow
from pypto_op.workspace import OpWorkspace


@dataclass
class Context:
    """What a gate sees: the operator, its state, the action's arguments, the facts found so far.

    `report` is the verdict of the judge that this call ran, None before it ran.
    """

    ws: OpWorkspace
    state: State
    args: Arguments
    facts: Facts
    report: Mapping[str, Any] | None = None


Gate = Callable[[Context], None]
GATES: dict[str, Gate] = {}


def gate(function: Gate) -> Gate:
    """Register a gate under its name without the underscore."""
    GATES[function.__name__.lstrip("_")] = function
    return function


def freeze(ws: OpWorkspace, path: Path, stage: int, phase: str | None = None) -> Frozen:
    """Return the row that freezes a file with the bytes that it has now."""
    row = Frozen(path=str(path.relative_to(ws.root)), sha256=sha256_file(path), stage=stage)
    if phase is not None:
        row["phase"] = phase
    return row


def freeze_closure(context: Context, report: Mapping[str, Any], stage: int, phase: str | None = None) -> dict[str, Frozen]:
    """Return the rows that freeze what a verdict rests on beside the operator's own files, where no earlier one did."""
    rows: dict[str, Frozen] = {}
    for name, path, digest in frozen_names(report, context.ws):
        if name in context.state["artifact_hashes"]:
            continue
        rows[name] = Frozen(path=path, sha256=digest, stage=stage)
        if phase is not None:
            rows[name]["phase"] = phase
    return rows


def artifact_path(ws: OpWorkspace, name: str) -> Path:
    """Return the path of an artefact of the table."""
    path = getattr(ws, workflow().artifacts[name].at)
    assert isinstance(path, Path)
    return path
