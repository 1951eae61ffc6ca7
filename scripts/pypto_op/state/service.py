"""Carry out an action: lock, load, check, gates, step, commit; the judge runs outside the lock."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pypto_op.errors import ContractError, InfraError, Refused
from pypto_op.proof import evidence
from pypto_op.proof.key import key_id
from pypto_op.state import arguments, gates, journal, ledger, roles, store
from pypto_op.state.deliverables import answer
from pypto_op.state.facts import Arguments, Facts
from pypto_op.state.machine import action_row, check, legal_actions, step
from pypto_op.state.model import State, phase_names, phases
from pypto_op.state.verdicts import NeedsJudge
from pypto_op.vocabulary import FailureCategory, Role, Status
from pypto_op.workflow import ActionRow
from pypto_op.workspace import OpWorkspace

_ROUNDS = 2
"""Once without the judge, once with its verdict; bytes that change in between are refused."""


def transition(
    op_dir: Path | str,
    action: str,
    *,
    token: str | None = None,
    declared: str | None = None,
    person: bool = False,
    require_token: bool = False,
    from_version: str | None = None,
    **given: Any,
) -> dict[str, Any]:
    """Carry out an action on an operator.

    Args:
        action: a name of `workflow.json`.
        token: the caller's token (`roles`).
        declared: the role that the caller says it has.
        person: an owner confirmed this at a terminal; the caller vouches for it.
        require_token: with `init` and `adopt`: issue an orchestrator's token and ask for it from now on. An
            agent's `init` always does.
        from_version: with `init`: a state file of this older version is replaced (`migrate`).
        **given: the action's arguments: stage, phase, target_stage, reason, failure_category, ...

    Returns:
        ok, action, stage, phase, target_stage, current_stage, stage5_active_phase, statePath, warnCount,
        infoCount, next (the actions that could follow), and where they apply: attempt, phase_status, token,
        verdict; memory: why MEMORY.md could not be brought up to date.

    Raises:
        Refused: the machine or a gate says no; the state is unchanged (a refused design or composition is told in MEMORY.md).
        ContractError: the state, the journal or a document is broken; nothing was changed.
        InfraError: the machine could not do the work; nothing was changed unless the message says so.
    """
    row = action_row(action)
    args = arguments.parse(row, given)
    ws = OpWorkspace.at(op_dir)
    caller = _Caller(token, declared, person)
    require_token = roles.token_needed(action, require_token)
    report: Mapping[str, Any] | None = None
    for _ in range(_ROUNDS):
        try:
            with store.locked(ws):
                return _Call(ws, row, args, caller, require_token, from_version, report).carry_out()
        except NeedsJudge as need:
            report = answer(ws, need.demand)
    raise Refused("files changed while they were judged", file=ws.root, remedy="let nothing write them, then repeat")


@dataclass(frozen=True)
class _Caller:
    """Who calls, as far as the caller says it; `roles.identify` decides what that is worth."""

    token: str | None
    declared: str | None
    person: bool


@dataclass
class _Call:
    """One attempt at an action, under the lock."""

    ws: OpWorkspace
    row: ActionRow
    args: Arguments
    caller: _Caller
    require_token: bool
    from_version: str | None
    report: Mapping[str, Any] | None

    def carry_out(self) -> dict[str, Any]:
        loaded = self._load()
        state = loaded.state
        caller = self.caller
        by = roles.identify(state, self.row.name, token=caller.token, declared=caller.declared, person=caller.person)
        if state is not None and "attempt" in self.args:
            self.args["attempt"] = roles.attempt_named(self.args["attempt"], state)
        check(state, self.row.name, self.args, by=by)
        facts, kept = self._gather(state, by)
        try:
            after = step(state, self.row.name, self.args, facts)
        except Refused:
            ledger.reject(self.ws, self.row.name, facts)
            raise
        facts.pop("refusals", None)
        tail = store.commit(self.ws, loaded.tail, after, action=self.row.name, args=self.args, facts=facts)
        if kept is not None:
            _keep(self.ws, kept)
        result = describe(self.ws, after, self.row.name, self.args, facts, tail.seq)
        unwritten = ledger.write(self.ws, after, self.row.name, self.args, facts, kept)
        if unwritten:
            result["memory"] = unwritten
        self._add_token(after, result)
        return result

    def _load(self) -> store.Loaded:
        if self.row.name == "adopt":
            return store.load_foreign(self.ws)
        if self.from_version is not None:
            return store.load_older(self.ws, self.from_version)
        return store.load(self.ws)

    def _gather(self, state: State | None, by: str) -> tuple[Facts, Mapping[str, Any] | None]:
        facts = Facts(time=_now(), by=by)
        if self.row.name in ("init", "adopt"):
            facts["op"] = self.ws.name
            facts["run_id"] = os.urandom(8).hex()
            facts["key_id"] = key_id()
            facts["token_required"] = self.require_token
        if state is None or not self.row.gates:
            return facts, None
        context = gates.Context(self.ws, state, self.args, facts, self.report)
        try:
            gates.run(context, self.row.gates)
        except InfraError:
            raise
        except ContractError as error:
            facts["refusals"] = [{"problem": error.problem, "file": error.file, "where": error.where, "remedy": error.remedy}]
        return facts, context.report if "verdict" in facts else None

    def _add_token(self, state: State, result: dict[str, Any]) -> None:
        if self.row.name in ("init", "adopt") and self.require_token:
            result["token"] = roles.issue(str(Role.ORCHESTRATOR), state["run_id"])
        if self.row.name == "dispatch":
            phase = self.args.get("phase", "")
            attempt = phases(state)[phase]["attempt"] or "" if phase else ""
            result["attempt"] = attempt or None
            result["token"] = roles.issue(self.args["role"], state["run_id"], phase=phase, attempt=attempt)


def _keep(ws: OpWorkspace, report: Mapping[str, Any]) -> None:
    try:
        evidence.keep(ws, report)
    except OSError as error:
        raise InfraError(
            f"the verdict cannot be kept ({error.strerror}); the step itself is recorded",
            file=evidence.evidence_dir(ws),
            remedy="make room; a later gate would judge again",
        ) from None


def _now() -> str:
    """Return the time as ISO 8601, UTC, in milliseconds; datetime would cost more to import than the step takes."""
    now = time.time()
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(now))}.{int(now * 1000) % 1000:03d}+00:00"


def describe(ws: OpWorkspace, state: State, action: str, args: Arguments, facts: Facts, seq: int) -> dict[str, Any]:
    """Return the result of an action, for people and for agents."""
    lint = facts.get("lint", {})
    result: dict[str, Any] = {
        "ok": True,
        "action": action,
        "stage": args.get("stage"),
        "phase": args.get("phase"),
        "target_stage": args.get("target_stage"),
        "current_stage": state["current_stage"],
        "current_stage_status": state["stage_status"][str(state["current_stage"])],
        "stage5_active_phase": state["stage5_phases"]["active_phase"],
        "statePath": str(ws.state),
        "warnCount": lint.get("warn", 0),
        "infoCount": lint.get("info", 0),
        "sequence": seq,
        "next": legal_actions(state, action),
    }
    attempt = args.get("attempt")
    phase = args.get("phase") or (attempt.split(".", 1)[0] if attempt else None)
    if phase in phases(state):
        result["phase"] = phase
        result["phase_status"] = phases(state)[phase]["status"]
        result["attempt"] = phases(state)[phase]["attempt"]
        result["cycles"] = phases(state)[phase]["cycles"]
    if "verdict" in facts:
        result["verdict"] = dict(facts["verdict"])
    return result


def status(op_dir: Path | str) -> dict[str, Any]:
    """Return what the state says, which frozen files no longer hold, and what could come next.

    Raises:
        ContractError: the state or the journal is broken.
    """
    ws = OpWorkspace.at(op_dir)
    loaded = store.load(ws)
    state = loaded.state
    if state is None:
        return {"ok": True, "operator_name": ws.name, "current_stage": None, "next": legal_actions(None)}
    problems = gates.frozen_problems(ws, state, state["artifact_hashes"].values())
    plan = state["plan"]
    failed, last = _told(ws)
    return {
        "ok": True,
        "operator_name": ws.name,
        "current_stage": state["current_stage"],
        "max_stage": state["max_stage"],
        "stage_status": dict(state["stage_status"]),
        "stage_retry_count": dict(state["stage_retry_count"]),
        "stage5_active_phase": state["stage5_phases"]["active_phase"],
        "phases": {
            name: {key: phase[key] for key in _PHASE_KEYS if key in phase}  # type: ignore[literal-required]
            for name, phase in ((name, phases(state)[name]) for name in phase_names(state))
        },
        "failed_verdicts": failed,
        "decomposition": plan["decomposition"] if plan else None,
        "module_count": plan["module_count"] if plan else None,
        "composition": bool(state["composition"]),
        "integration": bool(state["integration"]),
        "token_required": state["token_required"],
        "problems": [problem.one_line() for problem in problems],
        "sequence": loaded.tail.seq,
        "next": legal_actions(state, last),
    }


def _told(ws: OpWorkspace) -> tuple[int, str]:
    """Return how many recorded verdicts failed since `init`, and the last action.

    A phase's own count begins anew with each plan; this one tells a person how often the whole run has failed.
    """
    failed, last = 0, ""
    for line in journal.read(ws.journal):
        last = line.action
        if last == "init":
            failed = 0
        verdict = line.facts.get("verdict", {})
        infra = verdict.get("failure_category") == FailureCategory.INFRA
        failed += last in ("record_verdict", "fail_phase") and not Status(verdict["status"]).passed and not infra
    return failed, last


_PHASE_KEYS = ("status", "cycles", "attempt", "failure_category", "failing_module_boundary", "last_error", "verified_at")
