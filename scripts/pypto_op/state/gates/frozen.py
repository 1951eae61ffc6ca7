"""Frozen files: every action compares each of them with its hash again."""

from __future__ import annotations

from collections.abc import Iterable

from pypto_op.errors import Refused
from pypto_op.hashing import ABSENT
from pypto_op.proof.closure import hash_at
from pypto_op.state.gates.base import Context, artifact_path, freeze, gate
from pypto_op.state.model import Frozen, State, phase_number
from pypto_op.state.store import plan_matches
from pypto_op.workflow import workflow
from pypto_op.workspace import OpWorkspace, to_run


@gate
def _frozen(context: Context) -> None:
    check_frozen(context.ws, context.state, context.state["artifact_hashes"].values())


@gate
def _frozen_below_target(context: Context) -> None:
    target = context.args["target_stage"]
    kept = [row for row in context.state["artifact_hashes"].values() if row["stage"] < target]
    check_frozen(context.ws, context.state, kept, plan=target > 4)


@gate
def _frozen_below_phase(context: Context) -> None:
    k = phase_number(context.args["phase"])
    kept = [
        row
        for row in context.state["artifact_hashes"].values()
        if row["stage"] < 5 or ("phase" in row and phase_number(row["phase"]) < k)
    ]
    check_frozen(context.ws, context.state, kept)


def check_frozen(ws: OpWorkspace, state: State, rows: Iterable[Frozen], *, plan: bool = True) -> None:
    """Refuse when a frozen file is not what it was: changed, missing, or there where none was.

    Raises:
        Refused: naming the file and its owner stage.
    """
    for problem in frozen_problems(ws, state, rows, plan=plan):
        raise problem


def frozen_problems(ws: OpWorkspace, state: State, rows: Iterable[Frozen], *, plan: bool = True) -> Iterable[Refused]:
    """Yield one refusal for each frozen file that is not what it was."""
    for row in rows:
        now = hash_at(ws.root, row["path"])
        if now == row["sha256"]:
            continue
        what = "is missing" if now == ABSENT else "appeared" if row["sha256"] == ABSENT else "was changed"
        owner = _what_thaws(row, state)
        since = f"{row['phase']} was verified" if "phase" in row else f"stage {row['stage']} froze it"
        yield Refused(f"{what} since {since}", file=ws.root / row["path"], remedy=f"restore it, or use {owner}")
    if plan and not plan_matches(ws, state):
        yield Refused(
            "was changed since freeze_plan",
            file=ws.plan,
            remedy=f"{to_run('state replay --op-dir', ws.root)}, which writes it anew",
        )


def _what_thaws(row: Frozen, state: State) -> str:
    """Return the action after which the owner of a frozen file may write it."""
    if "phase" in row:
        return f"reopen_phase {row['phase']}"
    if row["stage"] == state["current_stage"]:
        return f"fail_stage {row['stage']} and then start_stage {row['stage']}"
    return f"rollback_to_stage {row['stage']}"


@gate
def _artifact_file(context: Context) -> None:
    name = context.args["name"]
    row = workflow().artifacts[name]
    path = artifact_path(context.ws, name)
    frozen = freeze(context.ws, path, row.stage)
    if frozen["sha256"] == ABSENT:
        raise Refused("is missing", file=path, remedy="write it first")
    claimed = context.args.get("hash")
    if claimed is not None and claimed != frozen["sha256"]:
        raise Refused(
            f"has the sha256 {frozen['sha256'][:12]}..., not {claimed[:12]}...",
            file=path,
            remedy="leave --hash out; the tool computes it",
        )
    context.facts["frozen"] = {name: frozen}
