"""The result of a verification, from what its passes found."""

from __future__ import annotations

import time
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from pypto_op import __version__
from pypto_op.triton.run.results import sealed
from pypto_op.triton.run.targets import versions

if TYPE_CHECKING:
    from pypto_op.triton.run.passes import Run


def of(run: Run, status: str, error: str | None) -> dict[str, Any]:
    """Return the result of a verification, sealed."""
    passed = sum(case.judgement.ok for case in run.cases) if status != "ERROR" or run.total else 0
    total = max(run.total or 0, len(run.cases))
    if status == "ERROR" and passed == total:
        passed = 0 if not total else min(passed, total - 1)
    policy = run.policy
    body: dict[str, Any] = {
        "schema_version": 1,
        "op_name": run.project.op_name,
        "impl_name": run.project.impl_name,
        "total_cases": total,
        "passed_cases": passed,
        "failed_cases": total - passed,
        "failures": [case.failure() for case in run.cases if not case.judgement.ok],
        "cases": [case.as_dict() for case in run.cases],
        "status": status,
        "error": None if error is None else error[:2000],
        "backend": str(run.place.target) if run.place else "none",
        "caveats": [*(run.place.caveats if run.place else ()), *_doubts(run), *run.unlaunched],
        "seeds": run.seeds,
        "policy": policy.as_dict() if policy else {},
        "hashes": run.hashes | ({"policy": policy.digest()} if policy else {}),
        "versions": {**versions(), "pypto-op": __version__},
        "seconds": round(time.monotonic() - run.started, 3),
        "created": datetime.now(timezone.utc).isoformat(timespec="seconds"),
    }
    return sealed(body)


def _doubts(run: Run) -> list[str]:
    """Return what the cases cannot tell, each once, with the cases that say so."""
    said: dict[str, list[int]] = {}
    for case in run.cases:
        for line in (*case.caveats, *case.unseen, *case.said, *case.made.copied, *case.unjudged()):
            said.setdefault(line, []).append(case.index + 1)
    return [f"case {', '.join(map(str, cases[:8]))}{' ...' if len(cases) > 8 else ''}: {line}" for line, cases in said.items()]
