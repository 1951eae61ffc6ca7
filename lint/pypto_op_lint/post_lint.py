"""Linting what a tool has left behind, and putting into words what the model must know about it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pypto_op.errors import PyptoOpError
from pypto_op.proof.state_seal import is_sealed
from pypto_op.workspace import JOURNAL_FILE, STATE_FILE
from pypto_op_lint.changes import Change, ContentIndex
from pypto_op_lint.guard.commands import bundle_commands
from pypto_op_lint.guard.frozen import changed_frozen_file, read_state
from pypto_op_lint.guard.paths import Located, Place, Surroundings
from pypto_op_lint.guard.policy import TAG, Policy, refusal
from pypto_op_lint.guard.roles import load_roles

_LOOP = 5
"""So many times the same finding at the same place in a row means that the agent is turning in a circle."""

_MAX_REPORTED = 8
_MAX_NOTES = 12


@dataclass
class Found:
    """What the model must hear: reasons refuse, notes only inform."""

    reasons: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


class PostLint:
    """Lints the files of one request."""

    def __init__(self, index: ContentIndex, around: Surroundings, request: dict[str, Any]) -> None:
        self.index = index
        self.around = around
        self.session = str(request["session"])
        self.agent = str(request["agent"])
        self.author = str(request["agent_id"] or request["agent"])
        self.whole_session = request["event"] != "SubagentStop"
        self.found = Found()
        self.command = str(request["command"])
        self.commands: set[str] | None = None
        by = {"Bash": "by a shell command ", "": ""}
        self.by = by.get(str(request["tool"]), f"by {request['tool']} ") if request["event"] == "PostToolUse" else ""

    def files(self, paths: Iterable[Path]) -> Found:
        """Lint the files that a tool has written."""
        for path in paths:
            at = self.around.locate(path)
            if at.place is Place.OPERATOR and at.op:
                self._frozen(at, "was written though it is frozen")
                self._lint(at)
        return self.found

    def changed_files(self, newer_than: float | None = None) -> Found:
        """Find by content what changed since the last look, whatever program did it; say what it must not, and lint it."""
        changes = list(self.index.changes(self.around, newer_than))
        refused = [change for change in changes if self._must_not(change)]
        for change in changes[:_MAX_REPORTED]:
            at = self.around.locate(change.path)
            if change.deleted and change not in refused:
                self.found.notes.append(f"{TAG} {change.path}: this operator file was deleted.")
            elif at.place is Place.OPERATOR and not change.deleted and not _is_template(at):
                self._lint(at)
        if len(changes) > _MAX_REPORTED:
            left = len(changes) - _MAX_REPORTED
            self.found.notes.append(f"{TAG} {left} more operator files changed; lint them with `pypto-op lint`.")
        return self.found

    def _must_not(self, change: Change) -> bool:
        """Refuse a change that is nobody's, or not this agent's; say whether it is one."""
        what = f"was {'deleted' if change.deleted else 'changed'} {self.by}".strip()
        at = _lexical(self.around, change.path)
        if at.place is Place.SECRET:
            why = "" if change.made else "the account's sealing key; no seal made with the old one holds any more"
            return self._refuse(f"this file {what}: it is {why}", at, "tell the person whose account it is") if why else False
        if at.op is None:
            return False
        if at.place is Place.MACHINE:
            holds = change.made or change.grown if at.relative == JOURNAL_FILE else is_sealed(at.path)
            why = f"this file of the state machine {what} past it, and its seal no longer holds"
            remedy = "put the old content back: until then every call of the state machine refuses it"
            return False if holds and not change.deleted else self._refuse(why, at, remedy)
        if not change.deleted and change.path.is_symlink():
            return self._refuse(f"this file {what}: it is a link now", at, "an operator's files are plain files: put one there")
        return self._frozen(at, f"{what} though it is frozen") or self._foreign(at, what)

    def _refuse(self, problem: str, at: Located, remedy: str) -> bool:
        """Add a reason against a change, up to as many as are reported."""
        if len(self.found.reasons) < 2 * _MAX_REPORTED:
            self.found.reasons.append(refusal(problem, at.path, remedy))
        return True

    def before_stopping(self) -> Found:
        """Lint again what was left refused, and what changed unseen.

        The main session answers for everything that the session left; an agent for what it wrote itself, and for
        unseen changes to files that it may write.
        """
        changes = list(self.index.changes(self.around)) if self.index.begun else []
        self.commands = _TOOLS_WORK
        for change in changes:
            self._must_not(change)
        changed = [change.path for change in changes if not change.deleted]
        left = self.index.outstanding(self.session, None if self.whole_session else self.author)
        for path in dict.fromkeys([*left, *changed]):
            at = self.around.locate(path)
            if at.place is Place.OPERATOR and at.path.is_file() and (path in left or self._concerns_agent(at)):
                self._lint(at)
        self.found.notes.clear()
        return self.found

    def _concerns_agent(self, at: Located) -> bool:
        table = load_roles()
        role = table.role_of(self.agent)
        if role is None or table.may_move_state(self.agent):
            return True
        return at.op is not None and role.name in table.writers_of(at.relative, at.op.name)

    def _frozen(self, at: Located, what: str) -> bool:
        assert at.op is not None
        state = read_state(at.op.root)
        because = state.frozen_because(at.relative, at.op.name)
        if not because or not changed_frozen_file(at.op.root, at.relative, state):
            return False
        remedy = "tell the orchestrator: no gate accepts it until the old content is back, or its stage is opened again"
        return self._refuse(f"this file {what}: {because}", at, remedy)

    def _foreign(self, at: Located, what: str) -> bool:
        """Refuse a change to what this agent may not write, unless a command of this bundle or an edit tool made it."""
        policy = Policy(self.around, self.agent)
        why = policy.why_not(at) if policy.role and not self.index.is_expected(at.path) else None
        if not why or self._is_bundles_work(at):
            return False
        remedy = "undo it if you did it, and tell the orchestrator; operator files are changed with Write and Edit"
        return self._refuse(f"this file {what}: {why[0]}", at, remedy)

    def _is_bundles_work(self, at: Located) -> bool:
        """Say whether a command of this bundle that the shell command runs writes this file itself."""
        assert at.op is not None
        if self.commands is None:
            self.commands = bundle_commands(self.command, self.around)
        return any(load_roles().is_work_of(command, at.relative, at.op.name) for command in self.commands)

    def _lint(self, at: Located) -> None:
        from pypto_op_lint.api import block_message, lint_path

        try:
            result = lint_path(at.path)
        except PyptoOpError as error:
            self.found.reasons.append(f"[pypto-op-lint] {error.one_line()}")
            return
        signature = sorted(f"{f.rule_id} {f.file}:{f.line}" for f in result.blocking)
        seen = self.index.note(at.path, session=self.session, author=self.author, signature=signature)
        message = block_message(result)
        if message:
            lines = [message, f"file: {at.path}"]
            if seen.repeats >= _LOOP:
                lines.append(
                    f"This is attempt {seen.repeats} with the same findings at the same place: stop, log "
                    "`lint not resolvable, escalating` in MEMORY.md and return to the orchestrator."
                )
            self.found.reasons.append("\n".join(lines))
        elif result.findings:
            shown = [f"  [{f.rule_id}][{f.severity}][{f.status}] {f.place} {f.message}" for f in result.findings]
            more = [f"  ... and {len(shown) - _MAX_NOTES} more"] if len(shown) > _MAX_NOTES else []
            head = f"[pypto-op-lint] {at.path}: nothing blocks; worth knowing:"
            self.found.notes.append("\n".join([head, *shown[:_MAX_NOTES], *more]))


_TOOLS_WORK = {"verify"}
"""What the server's tools write is seen at the end of a turn first: no hook runs after a tool that only looks."""


def _lexical(around: Surroundings, path: Path) -> Located:
    """Say what a path is by its own name, wherever a link there leads."""
    at = around.locate(path)
    op = around.owner(path) if os.path.islink(path) else None  # noqa: PTH114 - is_symlink raises for a name that is too long
    return Located(path, Place.OPERATOR, op, path.relative_to(op.root).as_posix()) if op else at


def _is_template(at: Located) -> bool:
    """Say whether a changed document is one that `pypto-op new` has just left, full of TODO: not yet anybody's work."""
    return at.path.suffix == ".md" and at.op is not None and not (at.op.root / STATE_FILE).exists()
