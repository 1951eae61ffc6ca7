"""What a verdict says of all its cases: how many are right, what failed, and what they cannot tell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pypto_op.triton.run.case import Case

_LONGEST = 2000
_MOST_NUMBERS = 8


def status(cases: Sequence[Case], total: int | None) -> str:
    """Return PASS when every case is right and there is at least one."""
    passed = sum(case.judgement.ok for case in cases)
    return "PASS" if cases and passed == total == len(cases) else "FAIL"


def of_cases(cases: Sequence[Case], total: int | None, status: str, error: str | None) -> dict[str, Any]:
    """Return a verdict's fields about its cases.

    Args:
        cases: those that ran.
        total: how many the task has, where that is known.
        status: of the verdict; with ERROR not every case counts as right.
        error: why there is no verdict.
    """
    passed = sum(case.judgement.ok for case in cases) if status != "ERROR" or total else 0
    count = max(total or 0, len(cases))
    if status == "ERROR" and passed == count:
        passed = 0 if not count else min(passed, count - 1)
    return {
        "total_cases": count,
        "passed_cases": passed,
        "failed_cases": count - passed,
        "failures": [case.failure() for case in cases if not case.judgement.ok],
        "cases": [case.as_dict() for case in cases],
        "status": status,
        "error": None if error is None else error[:_LONGEST],
    }


def doubts(cases: Sequence[Case]) -> list[str]:
    """Return what the cases cannot tell, each once, with the cases that say so."""
    said: dict[str, list[int]] = {}
    for case in cases:
        for line in (*case.caveats, *case.unseen, *case.said, *case.made.copied, *case.unjudged()):
            said.setdefault(line, []).append(case.index + 1)
    return [
        f"case {', '.join(map(str, numbers[:_MOST_NUMBERS]))}{' ...' if len(numbers) > _MOST_NUMBERS else ''}: {line}"
        for line, numbers in said.items()
    ]
