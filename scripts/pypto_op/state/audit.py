"""`replay` rebuilds the state from the journal; `audit` says whether journal, state and files still agree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pypto_op.errors import ContractError
from pypto_op.hashing import sha256_json
from pypto_op.proof.key import key_id
from pypto_op.state import gates, journal, store
from pypto_op.state.model import State
from pypto_op.workspace import OpWorkspace, to_run


def replay(op_dir: Path | str) -> dict[str, Any]:
    """Rebuild the state file and the plan file from the journal.

    Raises:
        ContractError: there is no journal, it was tampered with, or it leads to another state than it says.
    """
    ws = OpWorkspace.at(op_dir)
    with store.locked(ws):
        state, last = fold(ws)
        if state["key_id"] != key_id():
            raise ContractError(
                "was written under another account or key",
                file=ws.journal,
                remedy=f"let the owner {to_run('state adopt --op-dir', ws.root)} in a terminal",
            )
        try:
            same = store.load(ws)
            changed = same.behind or same.state != state
        except ContractError:
            changed = True
        if changed or not store.plan_matches(ws, state):
            store.write_state(ws, state, journal.read_tail(ws.journal))
    return {
        "ok": True,
        "action": "replay",
        "lines": last.seq,
        "rewritten": changed,
        "current_stage": state["current_stage"],
        "state_sha256": sha256_json(state),
    }


def fold(ws: OpWorkspace, *, every_line: bool = False) -> tuple[State, journal.Line]:
    """Return the state that the journal leads to, and its last line.

    Args:
        every_line: compare the state after every line with the hash that the line names, not only the last.

    Raises:
        ContractError: the journal is missing, was tampered with, or leads elsewhere than it says.
    """
    state: State | None = None
    last: journal.Line | None = None
    for line in journal.read(ws.journal):
        state = store.apply_line(ws, state, line)
        last = line
        if every_line:
            _same(ws, state, line)
    if state is None or last is None:
        raise store.no_line(ws)
    _same(ws, state, last)
    return state, last


def _same(ws: OpWorkspace, state: State, line: journal.Line) -> None:
    if sha256_json(state) != line.state:
        raise ContractError(
            "leads to another state than it names",
            file=ws.journal,
            where=f"line {line.seq}",
            remedy="another version of pypto-op wrote it; use that one",
        )


def audit(op_dir: Path | str) -> dict[str, Any]:
    """Check journal, state file, plan file, frozen files and seals against one another. Writes nothing.

    Returns:
        ok, lines, foreign_lines (sealed by another key), problems (one line each), history (one row per
        line).

    Raises:
        ContractError: the operator's directory is missing.
    """
    ws = OpWorkspace.at(op_dir)
    problems: list[str] = []
    history: list[dict[str, Any]] = []
    foreign = 0
    try:
        for line in journal.read(ws.journal):
            foreign += not line.authentic
            history.append({"seq": line.seq, "time": line.facts["time"], "by": line.facts["by"], **_row(line)})
        state, _ = fold(ws, every_line=True)
        loaded = store.load(ws)
        if loaded.state != state:
            problems.append(f"{ws.state}: is not what the journal leads to; run `pypto-op state replay`")
        found = gates.frozen_problems(ws, state, state["artifact_hashes"].values())
        problems += [problem.one_line() for problem in found]
    except ContractError as error:
        problems.append(error.one_line())
    return {
        "ok": not problems,
        "action": "audit",
        "lines": len(history),
        "foreign_lines": foreign,
        "problems": problems,
        "history": history,
    }


def _row(line: journal.Line) -> dict[str, Any]:
    row: dict[str, Any] = {"action": line.action, "args": dict(line.args)}
    if "verdict" in line.facts:
        row["verdict"] = line.facts["verdict"]["status"]
    return row
