"""The state on disk: one lock, a write-ahead journal, an atomic replace, and an anchor outside the operator.

Order of a write: journal line (fsync), state file (temporary file, fsync, rename), plan file, anchor.
Killed before the journal line is whole, the action never happened; killed after it, the next reader rolls
the state forward.
"""

from __future__ import annotations

import hmac
import json
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from pypto_op.errors import ContractError, InfraError
from pypto_op.hashing import read_json, sha256_json
from pypto_op.locks import SECONDS, Lock
from pypto_op.proof.key import key_file, key_id
from pypto_op.proof.state_seal import state_seal
from pypto_op.state import journal
from pypto_op.state.facts import Arguments, Facts
from pypto_op.state.journal import Line, Tail
from pypto_op.state.machine import step
from pypto_op.state.model import SCHEMA_VERSION, State
from pypto_op.workspace import OpWorkspace, to_run

LOCK_FILE = ".orchestrator_lock"
OLD_VERSION = "2.0"
_REPLAY = "state replay --op-dir"
_MAX_STATE_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True)
class Loaded:
    """A state and the journal line that it belongs to; `behind`: the state file must be written again."""

    state: State | None
    tail: Tail
    behind: bool = False


def locked(ws: OpWorkspace, *, seconds: float = SECONDS) -> Lock:
    """Return the operator's one lock."""
    return Lock(ws.root / LOCK_FILE, seconds=seconds)


# -- reading ----------------------------------------------------------------------------------------------


def load(ws: OpWorkspace) -> Loaded:
    """Return the state, rolled forward to the journal's last line. Needs no lock.

    The state is read before the journal, so that a writer in between can only put the journal ahead.

    Raises:
        ContractError: the state or the journal is truncated, was changed, set back, or is another tool's.
    """
    if not ws.state.exists():
        return _from_journal(ws)
    body = read_json(ws.state, remedy=to_run(_REPLAY, ws.root), limit=_MAX_STATE_BYTES)
    if body.get("schema_version") != SCHEMA_VERSION:
        return _other_version(ws, body.get("schema_version"))
    seal, position = body.pop("seal", None), body.pop("journal", None)
    if body.get("key_id") != key_id():
        raise ContractError(
            "was written under another account or key",
            file=ws.state,
            remedy=f"let the owner {to_run('state adopt --op-dir', ws.root)} in a terminal",
        )
    if not isinstance(seal, str) or not hmac.compare_digest(seal.encode(), state_seal(body, position).encode()):
        raise ContractError("was changed by hand: its seal does not hold", file=ws.state, remedy=to_run(_REPLAY, ws.root))
    state = cast(State, body)
    _check_name(ws, state, ws.state)
    anchor = _read_anchor(state)
    tail = journal.read_tail(ws.journal)
    seq, head = position["sequence"], position["head"]
    if not tail.seq:
        raise no_line(ws)
    if tail.seq < seq or (tail.seq == seq and tail.hash != head):
        raise ContractError(
            f"does not reach the state, which is at line {seq}",
            file=ws.journal,
            remedy="restore the journal: the two belong together",
        )
    if anchor is not None and (anchor[0] > tail.seq or (anchor[0] == tail.seq and anchor[1] != tail.hash)):
        raise ContractError(
            f"was set back: this run had reached line {anchor[0]}, the journal ends at {tail.seq}",
            file=ws.state,
            remedy=f"restore the newer files, or let the owner {to_run('state adopt --op-dir', ws.root)} in a terminal",
        )
    if tail.seq == seq:
        return Loaded(state, tail)
    return Loaded(_fold(ws, state, seq, head), tail, behind=True)


def load_foreign(ws: OpWorkspace) -> Loaded:
    """Return the state that the journal leads to, whatever key sealed it; for `adopt`, by a person.

    Raises:
        ContractError: there is no journal, or its chain is broken.
    """
    tail = journal.read_tail(ws.journal)
    state: State | None = None
    for line in journal.read(ws.journal):
        state = apply_line(ws, state, line)
    if state is None:
        raise no_line(ws)
    _check_name(ws, state, ws.journal)
    return Loaded(state, tail, behind=True)


def no_line(ws: OpWorkspace) -> ContractError:
    """Return what is said where no journal, or no whole line of one, is there to go by."""
    anew = to_run("state init --op-dir", ws.root)
    if not os.path.lexists(ws.state):
        return ContractError("there is no journal", file=ws.journal, remedy=anew)
    lost = f"bring it back; where it is lost, remove {ws.state.name} and {anew}, which begins at stage 1"
    return ContractError("there is no whole line in it, so no state follows from it", file=ws.journal, remedy=lost)


def load_older(ws: OpWorkspace, version: str) -> Loaded:
    """Return an empty start in the place of a state file of an older version; for `migrate`.

    Raises:
        ContractError: the state file is of another version, or a journal says that the new run has begun.
    """
    tail = journal.read_tail(ws.journal)
    found = read_json(ws.state, remedy=to_run(_REPLAY, ws.root), limit=_MAX_STATE_BYTES).get("schema_version")
    if found != version or tail.seq:
        raise ContractError("is being migrated already", file=ws.state, remedy=to_run("state status --op-dir", ws.root))
    return Loaded(None, tail)


def _from_journal(ws: OpWorkspace) -> Loaded:
    tail = journal.read_tail(ws.journal)
    state = _fold(ws, None, 0, journal.NO_LINE) if tail.seq else None
    return Loaded(state, tail, behind=state is not None)


def _other_version(ws: OpWorkspace, version: object) -> Loaded:
    """Say how to go on from another version's state file; what a killed `migrate` left is overtaken."""
    if version == OLD_VERSION:
        if journal.read_tail(ws.journal).seq:
            return _from_journal(ws)
        raise ContractError(
            "schema_version 2.0 is the predecessor's; it carries no evidence",
            file=ws.state,
            where="schema_version",
            remedy=f"{to_run('state migrate --op-dir', ws.root)}, which takes its completed stages through the gates",
        )
    raise ContractError(
        f"schema_version {repr(version)[:40]} is not known",
        file=ws.state,
        where="schema_version",
        remedy=f"this tool writes {SCHEMA_VERSION}; update pypto-op, or {to_run(_REPLAY, ws.root)}",
    )


def _check_name(ws: OpWorkspace, state: State, file: Path) -> None:
    if state["operator_name"] != ws.name:
        raise ContractError(
            f"belongs to the operator {state['operator_name']!r}",
            file=file,
            remedy=f"name the folder {state['operator_name']} again; in a copy remove state and journal, then run init",
        )


def _fold(ws: OpWorkspace, state: State | None, seq: int, head: str) -> State:
    """Return `state` (at line `seq`, whose hash is `head`) after the lines that follow it."""
    met = seq == 0
    for line in journal.read(ws.journal):
        if line.seq == seq:
            met = line.hash == head
        elif line.seq > seq:
            state = apply_line(ws, state, line)
    if not met or state is None:
        raise ContractError("does not fit the state file", file=ws.journal, remedy=to_run(_REPLAY, ws.root))
    _check_name(ws, state, ws.journal)
    if state["key_id"] != key_id():
        raise ContractError(
            "was written under another account or key",
            file=ws.journal,
            remedy=f"let the owner {to_run('state adopt --op-dir', ws.root)} in a terminal",
        )
    return state


def apply_line(ws: OpWorkspace, state: State | None, line: Line) -> State:
    """Return the state after one journal line.

    Raises:
        ContractError: the machine would not have taken the step, or it leads elsewhere than the line says.
    """
    try:
        after = step(state, line.action, line.args, line.facts, in_place=True)
    except (ContractError, KeyError, TypeError, AssertionError) as error:
        problem = error.problem if isinstance(error, ContractError) else type(error).__name__
        raise ContractError(
            f"{line.action!r} cannot follow ({problem})",
            file=ws.journal,
            where=f"line {line.seq}",
            remedy="the journal was forged, or another version wrote it",
        ) from None
    if line.key != after["key_id"]:
        raise ContractError("is sealed with a key that the state does not name", file=ws.journal, where=f"line {line.seq}")
    return after


# -- writing ----------------------------------------------------------------------------------------------


def commit(ws: OpWorkspace, tail: Tail, state: State, *, action: str, args: Arguments, facts: Facts) -> Tail:
    """Make one step durable: journal first, then the state. The caller holds the lock.

    Raises:
        InfraError: the disk refused; if the journal line was written, the next call rolls forward.
    """
    tail = journal.append(ws.journal, tail, action=action, args=args, facts=facts, state_sha256=sha256_json(state))
    write_state(ws, state, tail)
    return tail


def write_state(ws: OpWorkspace, state: State, tail: Tail) -> None:
    """Replace the state file, the plan file and the anchor with what belongs to journal line `tail`."""
    position = {"sequence": tail.seq, "head": tail.hash}
    document = {**state, "journal": position, "seal": state_seal(state, position)}
    try:
        _replace(ws.state, _pretty(document))
        sync_plan(ws, state)
        anchor = _anchor(state)
        anchor.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        _replace(anchor, f"{tail.seq} {tail.hash}\n".encode(), durable=False)
    except OSError as error:
        raise InfraError(
            f"the state cannot be written ({error.strerror})",
            file=ws.state,
            remedy="make room or make it writable; the journal has the step, the next call completes it",
        ) from None


def sync_plan(ws: OpWorkspace, state: State) -> None:
    """Make the plan file say what the state says; it is a copy for readers, the state is the truth."""
    if state["plan"] is None:
        ws.plan.unlink(missing_ok=True)
        return
    text = _pretty(state["plan"])
    with suppress(FileNotFoundError):
        if ws.plan.read_bytes() == text:
            return
    _replace(ws.plan, text)


def plan_matches(ws: OpWorkspace, state: State) -> bool:
    """Say whether the plan file is exactly what `freeze_plan` wrote."""
    if state["plan"] is None:
        return True
    try:
        return ws.plan.read_bytes() == _pretty(state["plan"])
    except OSError:
        return False


def _pretty(document: Any) -> bytes:
    return (json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode()


def _replace(path: Path, data: bytes, *, durable: bool = True) -> None:
    draft = path.with_name(f"{path.name}.tmp")  # one name: the lock is held, and a killed writer leaves one file
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
    if durable:
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


# -- the anchor: what the account remembers of each run, so that a copied-back state is noticed -------------


def _anchor(state: State) -> Path:
    return key_file().parent / "runs" / state["run_id"]


def _read_anchor(state: State) -> tuple[int, str] | None:
    try:
        seq, head = _anchor(state).read_text("ascii").split()
        return int(seq), head
    except (FileNotFoundError, ValueError):
        return None
