"""The input of one step of the state machine: the action's arguments, what the gates found, and the refusal."""

from __future__ import annotations

from typing import Any, TypedDict

from pypto_op.state.model import Frozen, Plan


class Arguments(TypedDict, total=False):
    """The arguments of an action, checked and normalised by `arguments.parse`."""

    stage: int
    max_stage: int
    phase: str
    target_stage: int
    reason: str
    failure_category: str
    failed_phase: str
    failing_module_boundary: int
    last_error: str
    attempt: str
    report: str
    name: str
    hash: str
    role: str
    modes: list[str]


class Verdict(TypedDict, total=False):
    """What the gate took from the judge's report; no tensor values, no golden text."""

    status: str
    report_sha256: str
    failure_category: str
    failing_module_boundary: int
    summary: str
    judged_again: bool


class _FactsCore(TypedDict):
    time: str
    by: str


class Facts(_FactsCore, total=False):
    """What the tool found out for an action. Everything is JSON: the journal keeps it.

    Attributes:
        time: ISO 8601, UTC.
        by: who acted: `orchestrator`, `owner` or `person`.
        refusals: keyword arguments of `Refused`, one per gate that says no; never journalled.
        frozen: the files that the action freezes, with the hashes that the tool computed.
        lint: number of warnings and remarks (a blocking finding is a refusal).
        submitted: hashes of the files that an attempt is about.
        functions: normalised hash of each function of a verified module.
    """

    refusals: list[dict[str, Any]]
    frozen: dict[str, Frozen]
    lint: dict[str, int]
    plan: Plan
    verdict: Verdict
    composition: dict[str, Any]
    submitted: dict[str, str]
    functions: dict[str, str]
    op: str
    run_id: str
    key_id: str
    token_required: bool
    token_id: str
