"""The gate in front of the benchmark: a sealed PASS for exactly these bytes, on the same target."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pypto_op.errors import ContractError, with_kind
from pypto_op.hashing import read_json
from pypto_op.triton.run.setup import results
from pypto_op.triton.run.setup.project import Project

_AGAIN = "run verify.py again"


class GateClosed(ContractError):
    """There is no verdict that allows timing (exit 2); the message has what stands in the verdict."""


def check(project: Project, target: str) -> dict[str, Any]:
    """Return the verdict that allows timing `project` on `target`.

    Raises:
        GateClosed: it is missing, unreadable, not a full pass, not this tool's, or about other bytes or another target.
    """
    exists(project)
    path = project.verify_result
    verdict = _read(path)
    total, passed = verdict.get("total_cases"), verdict.get("passed_cases")
    if type(total) is not int or type(passed) is not int:
        raise _closed(path, verdict, "total_cases and passed_cases are not both integers")
    if total <= 0:
        raise _closed(path, verdict, "total_cases is 0: nothing was verified")
    if passed != total:
        raise _closed(path, verdict, f"only {passed} of {total} cases are right")
    if verdict.get("op_name") != project.op_name:
        raise _closed(path, verdict, f"it is about the operator {str(verdict.get('op_name'))[:60]!r}")
    if not results.is_sealed(verdict):
        raise _closed(path, verdict, "verify.py of this account did not write it, or it was changed afterwards")
    found = verdict.get("hashes") or {}
    stale = sorted(name for name, digest in project.hashes().items() if found.get(name) != digest)
    if stale:
        raise _closed(path, verdict, f"changed since it was verified: {', '.join(stale)}")
    if verdict.get("backend") != target:
        raise _closed(path, verdict, f"it was verified on {str(verdict.get('backend'))[:20]}, not on {target}")
    return verdict


def exists(project: Project) -> None:
    """Raise GateClosed where there is no verdict at all."""
    if not project.verify_result.is_file():
        raise GateClosed("there is no verdict", file=project.verify_result, remedy="run verify.py first")


def _read(path: Path) -> dict[str, Any]:
    try:
        return read_json(path, remedy=_AGAIN)
    except ContractError as error:
        raise GateClosed(f"the verdict {error.problem}", file=path, remedy=_AGAIN) from None


def _closed(path: Path, verdict: dict[str, Any], why: str) -> GateClosed:
    failures = verdict.get("failures")
    shown = [
        f"  case {f.get('case_idx')}: {with_kind(str(f.get('error_type'))[:60], ' '.join(str(f.get('error_msg')).split())[:160])}"
        for f in (failures if isinstance(failures, list) else [])[:5]
        if isinstance(f, dict)
    ]
    counts = f"passed {str(verdict.get('passed_cases'))[:20]} / total {str(verdict.get('total_cases'))[:20]}"
    closed = GateClosed(f"{why} ({counts})", file=path, remedy="run verify.py until every case passes, then benchmark.py")
    closed.failures = shown  # type: ignore[attr-defined]
    return closed
