"""The verifier's answer: built from a report, never from words, and rendered in the seeds' sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pypto_op.documents import schema
from pypto_op.vocabulary import FailureCategory


def from_report(report: Mapping[str, Any], *, report_file: str, report_sha256: str, phase: int | None = None) -> dict[str, Any]:
    """Return the verdict that an evaluation report stands for.

    Args:
        report: a report that satisfies `schemas/evaluation_report.schema.json`.
        report_file: where it lies.
        report_sha256: hash of the file.
        phase: k of the phase that was judged; None for the integrated implementation.

    Raises:
        ContractError: the report yields no valid verdict.
    """
    verdict: dict[str, Any] = {
        "schema_version": 1,
        "op": report["op_name"],
        "phase": None if phase is None else f"M{phase}",
        "verdict": _word(report),
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
    if verdict["verdict"] == "FAIL":
        verdict |= _failure(report)
    elif verdict["verdict"] == "BLOCKED":
        problem = str((report.get("error") or {}).get("message") or "no mode could judge")
        verdict["blocked"] = {"tried": _tried(report), "remedy": f"mend the machine: {problem}"[:600]}
    schema.check(verdict, "verdict", file=report_file)
    return verdict


def sentence(verdict: Mapping[str, Any]) -> str:
    """Return a verdict as the team's agents write it: `Phase M2 passed for M2. ...`."""
    phase = verdict["phase"]
    what = f"Phase {phase}" if phase else "E2E"
    target = phase or verdict["op"]
    evidence = f"Evidence: {verdict['evidence']['report']}."
    if verdict["verdict"] == "PASS":
        where = f" at --up-to-module {verdict['up_to_module']}" if "up_to_module" in verdict else ""
        levels = f" ({'/'.join(verdict['levels'])})" if "levels" in verdict else ""
        return f"{what} passed for {target}. Direct per-phase comparison PASS{where}{levels}.\n{evidence}"
    if verdict["verdict"] == "BLOCKED":
        blocked = verdict["blocked"]
        return f"BLOCKED - infra. Tried: {'; '.join(blocked['tried'])}. Remedy: {blocked['remedy']}.\n{evidence}"
    lines = [
        f"{what} FAILED for {target}. failure_category: {verdict['failure_category']}.",
        f"divergence_fingerprint: {verdict.get('divergence_fingerprint') or 'none'}",
        f"Failing file: {verdict['failing_file']}",
        f"Per-phase comparison: status=FAIL, failing_module_boundary={verdict.get('failing_module_boundary')}",
    ]
    if verdict.get("cpu_reproducer_candidate"):
        lines.append("cpu_reproducer_candidate: yes")
    return "\n".join([*lines, evidence, "Dispatch @pypto-op-debugger."])


def _word(report: Mapping[str, Any]) -> str:
    if report["status"] == "PASS":
        return "PASS"
    return "BLOCKED" if (report.get("error") or {}).get("kind") == "infra" else "FAIL"


def _failure(report: Mapping[str, Any]) -> dict[str, Any]:
    first = report["first_failure"] or {}
    failure: dict[str, Any] = {
        "failure_category": first.get("failure_category") or FailureCategory.OTHER.value,
        "divergence_fingerprint": first.get("divergence_fingerprint"),
        "failing_file": report["impl_file"],
        "failing_module_boundary": first.get("failing_module_boundary"),
    }
    if first.get("summary"):
        failure["summary"] = first["summary"]
    if first.get("cpu_reproducer_candidate"):
        failure["cpu_reproducer_candidate"] = True
    return failure


def _tried(report: Mapping[str, Any]) -> Sequence[str]:
    tried = [f"{mode}: {entry['reason'] or 'no verdict'}"[:600] for mode, entry in report["modes"].items()]
    return tried or ["no mode was available"]
