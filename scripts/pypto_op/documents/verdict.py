"""The verifier's answer: built from a report, never from words, and rendered in the seeds' sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pypto_op.documents import schema
from pypto_op.vocabulary import FailureCategory, Status


def from_report(
    report: Mapping[str, Any],
    *,
    report_file: str,
    report_sha256: str,
    phase: int | None = None,
    left_out: str = "",
    covers_phase: bool = False,
) -> dict[str, Any]:
    """Return the verdict that an evaluation report stands for.

    Args:
        report: a report that satisfies `schemas/evaluation_report.schema.json`.
        report_sha256: hash of the file.
        phase: k of the phase that was judged; None for the integrated implementation.
        left_out: of a PARTIAL: what it says nothing about.
        covers_phase: a PARTIAL holds all that the gate of a staged phase demands.

    Raises:
        ContractError: the report yields no valid verdict.
    """
    verdict: dict[str, Any] = {
        "schema_version": 1,
        "op": report["op_name"],
        "phase": None if phase is None else f"M{phase}",
        "verdict": _word(report),
        "modes": _modes(report),
        "evidence": {
            "report": report_file,
            "report_sha256": report_sha256,
            "cases_total": report["cases_total"],
            "cases_passed": report["cases_passed"],
        },
    }
    if report["up_to_module"]:
        verdict["up_to_module"] = report["up_to_module"]
    levels = sorted({check["level"] for check in report["checks"]})
    if levels:
        verdict["levels"] = levels
    if worst := _worst(report):
        verdict["worst"] = worst
    if verdict["verdict"] == "PARTIAL":
        verdict |= {"summary": left_out or "a part only", "covers_phase": covers_phase and phase is not None}
    else:
        verdict |= _reasons(verdict["verdict"], report)
    schema.check(verdict, "verdict", file=report_file)
    return verdict


def sentence(verdict: Mapping[str, Any]) -> str:
    """Return a verdict as the team's agents write it: `Phase M2 passed for M2. ...`."""
    phase, word = verdict["phase"], verdict["verdict"]
    what = f"Phase {phase}" if phase else "E2E"
    target = phase or verdict["op"]
    evidence = f"Evidence: {verdict['evidence']['report']}."
    if word == "REJECTED":
        return f"REJECTED: {verdict['summary']}\n{evidence}"
    if word == "BLOCKED":
        blocked = verdict["blocked"]
        return f"BLOCKED - infra. Tried: {'; '.join(blocked['tried'])}. Remedy: {blocked['remedy']}.\n{evidence}"
    if word in ("PASS", "PARTIAL"):
        where = f" at --up-to-module {verdict['up_to_module']}" if phase and "up_to_module" in verdict else ""
        levels = f" ({'/'.join(verdict['levels'])})" if "levels" in verdict else ""
        comparison = "Direct per-phase comparison" if phase else "Comparison of the whole operator"
        rest = f" {verdict['summary'][:1].upper()}{verdict['summary'][1:]}." if word == "PARTIAL" else ""
        passed = word == "PASS" or verdict["covers_phase"]
        how = f"{what} passed for {target}." if passed else f"A part of {target} passed; that is no verdict on it."
        return f"{how} {comparison} {word}{where}{levels}.{rest}\n{_counted(verdict)}\n{evidence}"
    lines = [
        f"{what} FAILED for {target}. failure_category: {verdict['failure_category']}.",
        f"divergence_fingerprint: {verdict.get('divergence_fingerprint') or 'null (it takes two modes)'}",
        f"Failing file: {verdict['failing_file']}",
        f"Per-phase comparison: status=FAIL, failing_module_boundary={verdict.get('failing_module_boundary')}",
        *([verdict["summary"]] if "summary" in verdict else []),
        f"cpu_reproducer_candidate: {'yes' if verdict.get('cpu_reproducer_candidate') else 'no'}",
        _counted(verdict),
    ]
    return "\n".join([*lines, evidence, "Dispatch @pypto-op-debugger."])


def _word(report: Mapping[str, Any]) -> str:
    if Status(report["status"]).passed:
        return str(report["status"])
    kind = (report.get("error") or {}).get("kind")
    return {"infra": "BLOCKED", "contract": "REJECTED"}.get(str(kind), "FAIL")


def _counted(verdict: Mapping[str, Any]) -> str:
    modes = ", ".join(f"{mode} {status}" for mode, status in verdict["modes"].items()) or "none"
    counts = verdict["evidence"]
    worst = f"; worst error {verdict['worst']}" if "worst" in verdict else ""
    return f"modes: {modes}; cases {counts['cases_passed']}/{counts['cases_total']}{worst}"


def _modes(report: Mapping[str, Any]) -> dict[str, str]:
    """Return the status of each mode; of one that is not there with the reason."""
    reasons = {mode: entry.get("reason") for mode, entry in report["modes"].items()}
    return {
        mode: f"{status} ({reasons[mode]})"[:600] if status == Status.SKIPPED and reasons.get(mode) else str(status)
        for mode, status in report["per_mode_status"].items()
    }


def _worst(report: Mapping[str, Any]) -> str:
    """Return the largest share of the tolerance that an error took, and where; "" where nothing was compared."""
    found = [
        (float(leaf["max_violation"]), str(check["id"]), str(leaf["name"]))
        for check in report["checks"]
        for result in check.get("modes", {}).values()
        for leaf in result.get("per_tensor", [])
        if leaf.get("max_violation") is not None
    ]
    if not found:
        return ""
    share, case, name = max(found)
    return f"{share:.2g} of the tolerance ({case}, {name})"[:600]


def _reasons(word: str, report: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a verdict adds that says no, or says nothing."""
    if word == "FAIL":
        return _failure(report)
    if word == "REJECTED":
        return {"summary": str(report["error"]["message"])[:600]}
    if word == "BLOCKED":
        problem = str((report.get("error") or {}).get("message") or "no mode could judge")
        return {"blocked": {"tried": _tried(report), "remedy": f"mend the machine: {problem}"[:600]}}
    return {}


def _failure(report: Mapping[str, Any]) -> dict[str, Any]:
    first = report["first_failure"] or {}
    failure: dict[str, Any] = {
        "failure_category": first.get("failure_category") or FailureCategory.OTHER.value,
        "divergence_fingerprint": first.get("divergence_fingerprint"),
        "failing_file": report["impl_file"],
        "failing_module_boundary": first.get("failing_module_boundary"),
    }
    if first.get("summary"):
        case = f"first case {first['case_id']}, " if first.get("case_id") else ""
        failure["summary"] = f"{case}{first['summary']}"[:600]
    if first.get("cpu_reproducer_candidate"):
        failure["cpu_reproducer_candidate"] = True
    return failure


def _tried(report: Mapping[str, Any]) -> Sequence[str]:
    tried = [f"{mode}: {entry['reason'] or 'no verdict'}"[:600] for mode, entry in report["modes"].items()]
    return tried or ["no mode was available"]
