"""What a verdict says of all its cases: how many are right, what failed, and what they cannot tell."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from pypto_op import __version__
from pypto_op.triton.run.setup.results import sealed
from pypto_op.triton.run.setup.targets import Target, versions

if TYPE_CHECKING:
    from pypto_op.triton.run.case import Case
    from pypto_op.triton.run.passes import Run

_ASKS = ("TRITON_INTERPRET", "knobs.runtime.interpret", "InterpretedFunction")
_ASKED = "the implementation asks whether Triton interprets it ({}): what it does on a device was not judged"
_ALONE = "one pass was asked for (--seeds 1): the task's own inputs alone were judged, no other values and none of the moved ones"
_LONGEST = 2000
_MOST_NUMBERS = 8


def of(run: Run, status: str, error: str | None) -> dict[str, Any]:
    """Return the result of a verification, sealed."""
    policy = run.policy
    body: dict[str, Any] = {
        "schema_version": 1,
        "op_name": run.project.op_name,
        "impl_name": run.project.impl_name,
        **of_cases(run.cases, run.total, status, error),
        "backend": str(run.place.target) if run.place else "none",
        "caveats": [*(run.place.caveats if run.place else ()), *doubts(run.cases), *run.unlaunched, *_asked(run), *_alone(run)],
        "seeds": run.seeds,
        "policy": policy.as_dict() if policy else {},
        "hashes": run.hashes | ({"policy": policy.digest()} if policy else {}),
        "versions": {**versions(), "pypto-op": __version__},
        "seconds": round(time.monotonic() - run.started, 3),
        "created": datetime.now(timezone.utc).isoformat(timespec="seconds"),
    }
    return sealed(body)


def of_cases(cases: Sequence[Case], total: int | None, status: str, error: str | None) -> dict[str, Any]:
    """Return a verdict's fields about its cases.

    Args:
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


def _asked(run: Run) -> list[str]:
    """Return what to say of a file that may do something else on a device than in the interpreter, where it was judged."""
    if run.place is None or run.place.target is not Target.INTERPRET or not run.project.impl.is_file():
        return []
    text = run.project.impl.read_text(encoding="utf-8", errors="replace")
    return [_ASKED.format(word) for word in _ASKS if word in text][:1]


def _alone(run: Run) -> list[str]:
    """Return what to say of a verification of one pass (`--seeds 1`): it leaves out all that later ones find."""
    return [] if len(run.seeds) > 1 else [_ALONE]


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
