"""Records that tools write and others read: checked against their schema, and against themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pypto_op.documents import schema
from pypto_op.documents.reading import read_json
from pypto_op.documents.schema import Finding

_LARGEST = 32 * 1024 * 1024
"""A report of thousands of cases is larger than a document that somebody wrote."""


def load(path: Path | str, name: str) -> dict[str, Any]:
    """Read a JSON record and check it.

    Args:
        path: the file.
        name: `evaluation_report`, `perf_result`, `verify_result`, `verdict`, `plan` or `state`.

    Raises:
        ContractError: unreadable, its schema is broken, or its counts contradict each other.
    """
    data = read_json(path, limit=_LARGEST)
    schema.check(data, name, file=path)
    schema.raise_first(contradictions(data, name), file=path)
    assert isinstance(data, dict)
    return data


def contradictions(data: Mapping[str, Any], name: str) -> list[Finding]:
    """Return where a record that satisfies its schema contradicts itself."""
    rule = _RULES.get(name)
    return list(rule(data)) if rule else []


def _verify_result(data: Mapping[str, Any]) -> Iterator[Finding]:
    passed, failed, total = data["passed_cases"], data["failed_cases"], data["total_cases"]
    if passed + failed != total:
        yield Finding("total_cases", f"is {total}, but {passed} passed and {failed} failed")
    if len(data["failures"]) != failed:
        yield Finding("failures", f"lists {len(data['failures'])}, failed_cases is {failed}")
    if data.get("status") == "PASS" and not (total and passed == total):
        yield Finding("status", "is PASS without every case passed")


def _evaluation_report(data: Mapping[str, Any]) -> Iterator[Finding]:
    checks, total = data["checks"], data["cases_total"]
    if len(checks) != total:
        yield Finding("cases_total", f"is {total}, checks has {len(checks)}")
    passed = sum(check["status"] == "PASS" for check in checks)
    if passed != data["cases_passed"]:
        yield Finding("cases_passed", f"is {data['cases_passed']}, {passed} of the checks passed")
    if data["status"] == "PASS" and not data["selection"]["complete"]:
        yield Finding("status", "is PASS although only a part was judged; that is PARTIAL")
    if data["status"] in ("PASS", "PARTIAL"):
        if not passed or passed + data["cases_skipped"] < total:
            yield Finding("status", f"is {data['status']} with {passed} of {total} cases passed")
        if data["first_failure"] is not None:
            yield Finding("first_failure", f"is there although the status is {data['status']}")


def _perf_result(data: Mapping[str, Any]) -> Iterator[Finding]:
    passed, failed, total = data["passed_cases"], data["failed_cases"], data["total_cases"]
    if passed + failed != total:
        yield Finding("total_cases", f"is {total}, but {passed} passed and {failed} failed")


_RULES: dict[str, Callable[[Mapping[str, Any]], Iterator[Finding]]] = {
    "verify_result": _verify_result,
    "evaluation_report": _evaluation_report,
    "perf_result": _perf_result,
}
