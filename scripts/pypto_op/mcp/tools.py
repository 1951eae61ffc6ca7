"""The work behind the tools: calls the libraries, and cuts what they return down to what an agent needs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pypto_op.errors import ContractError
from pypto_op.state.roles import TOKEN_ENV
from pypto_op.workspace import OpWorkspace, parse_phase

_MAX_FINDINGS = 20
_MAX_HISTORY = 10
_MAX_HITS = 3
_MAX_NOTES = 5
_MAX_PARAMETERS = 12
_MAX_TEXT = 240
_CASE_KEYS = (
    "case_id",
    "failing_module_boundary",
    "failure_category",
    "divergence_fingerprint",
    "summary",
    "mode",
    "reason",
    "first_bad_output",
    "first_bad_producer",
    "cpu_reproducer_candidate",
)


def state_transition(action: str, op_dir: str, token: str | None, given: Mapping[str, Any]) -> dict[str, Any]:
    """Carry out an action of the state machine, or look at the state (`status`, `audit`, `replay`).

    Raises:
        Refused, ContractError, InfraError: as `state.service.transition`.
    """
    from pypto_op.state import advancing, audit, service

    if action == "status":
        return service.status(op_dir)
    if action == "audit":
        result = audit.audit(op_dir)
        return {**result, "history": result["history"][-_MAX_HISTORY:]}
    if action == "replay":
        return audit.replay(op_dir)
    if action == advancing.ADVANCE:
        return advancing.advance(op_dir, modes=given["modes"], token=token or os.environ.get(TOKEN_ENV))
    return service.transition(op_dir, action, token=token or os.environ.get(TOKEN_ENV), require_token=action == "init", **given)


def verify(
    op_dir: str, modes: str, up_to_module: int | None, levels: str | None, case: str | None, impl: str | None
) -> dict[str, Any]:
    """Judge an implementation, in a process of its own.

    Raises:
        ContractError: the directory is missing or an argument makes no sense.
        InfraError: the judge gave no verdict at all.
    """
    from pypto_op.judge.cases.extent import counted
    from pypto_op.state.deliverables import run_judge
    from pypto_op.vocabulary import Status

    ws = OpWorkspace.at(op_dir)
    if ws.is_nobodys():  # a report is nothing for somebody else's folder
        raise ContractError("is no operator: none of an operator's files lies in it", file=op_dir, remedy="name custom/<op>")
    options = {"--up-to-module": up_to_module, "--levels": levels, "--case": case, "--impl": impl}
    words = [word for name, value in options.items() if value is not None for word in (name, str(value))]
    report = run_judge(ws, ["--modes", modes, *words])
    first = report["first_failure"]
    return {
        "ok": Status(report["status"]).passed,
        "status": report["status"],
        "counted": counted(report),
        "per_mode_status": report["per_mode_status"],
        "cases_total": report["cases_total"],
        "cases_passed": report["cases_passed"],
        "first_failure": {key: first.get(key) for key in _CASE_KEYS} if first else None,
        "error": report["error"]["message"] if report["error"] else None,
        "caveats": sorted({text for mode in report["modes"].values() for text in mode["caveats"]})[:5],
        "report": str(ws.report),
    }


def lint(path: str, event: str | None, stage: int | None, phase: str | None) -> dict[str, Any]:
    """Lint a file or an operator; the first findings, blocking ones first.

    Raises:
        ContractError: the path is missing, or the event or phase is none.
    """
    from pypto_op.vocabulary import LintEvent
    from pypto_op_lint import api

    target = Path(path).expanduser()
    if not target.exists():
        raise ContractError("no such file", file=path, remedy="name a file or an operator's directory")
    default = LintEvent.COMPLETE_STAGE if target.is_dir() else LintEvent.ON_WRITE
    try:
        at = LintEvent(event) if event else default
    except ValueError:
        words = ", ".join(LintEvent)
        raise ContractError(f"{event[:40]!r} is no event" if event else "no event", remedy=f"use {words}") from None
    k = parse_phase(phase) if phase else None
    run = api.lint_operator if target.is_dir() else api.lint_path
    result = run(target, event=at, stage=stage, phase=k)
    findings = [finding.as_dict() for finding in result.findings]
    return {
        "ok": not result.blocks,
        "blocking_rules": sorted({finding.rule_id for finding in result.blocking}),
        "findings": findings[:_MAX_FINDINGS],
        "findings_total": len(findings),
    }


def diagnose_error(error_log: str, kernel_code: str | None) -> dict[str, Any]:
    """Search what a failed run said for known mistakes; both arguments are a text or a path.

    Raises:
        ContractError: the log or the kernel cannot be read.
    """
    from pypto_op.diagnose.search import explain

    found = explain(error_log, kernel_code).as_dict()
    return {
        "ok": bool(found["hits"]),
        "hits": found["hits"][:_MAX_HITS],
        "undecided": found["undecided"],
        "searched": found["searched"],
        "notes": found["notes"][:_MAX_NOTES],
    }


def pypto_api(name: str | None, search: str | None) -> dict[str, Any]:
    """Describe one name of pypto, or list what fits `search`.

    Raises:
        ContractError: neither or both are given, or there is no such name (the nearest are named).
        InfraError: pypto is not installed.
    """
    from pypto_op.api import index

    if bool(name) == bool(search):
        raise ContractError("give either name or search", remedy='for example name="matmul"')
    if search:
        rows = index.load().search(search[:200])
        kept = [{"name": row["name"], "summary": row["summary"][:_MAX_TEXT] or row["signature"][:_MAX_TEXT]} for row in rows]
        told = [way.how for way in index.ways(search[:200])]
        return {"ok": bool(kept), "ways": told[:3], "names": kept}
    entry = index.describe(name or "")
    return {
        "ok": True,
        "entry": {
            **{key: value for key, value in entry.items() if key not in ("schema_version", "pypto_version")},
            "parameters": [{**row, "text": row["text"][:_MAX_TEXT]} for row in entry["parameters"][:_MAX_PARAMETERS]],
        },
    }
