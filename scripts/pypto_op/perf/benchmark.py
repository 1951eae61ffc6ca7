"""`benchmark_operator`: how fast a kernel is, shape by shape, once there is a PASS for exactly its bytes."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from pypto_op import __version__
from pypto_op.backends.base import Availability
from pypto_op.documents import schema
from pypto_op.documents.writing import write_atomically
from pypto_op.errors import ContractError
from pypto_op.judge.cases.contract import Contract
from pypto_op.judge.cases.subject import Subject, resolve
from pypto_op.judge.reporting import report as reports
from pypto_op.modes import REGISTRY
from pypto_op.perf import history
from pypto_op.perf.admission import Admitted, admit
from pypto_op.perf.away import measured_on
from pypto_op.perf.measuring import Hear, Measured, Request, label_of, timed_cases
from pypto_op.perf.samples import Against, Costs, spreads
from pypto_op.pool.pool import Pool
from pypto_op.proof import evidence
from pypto_op.vocabulary import Mode, Status
from pypto_op.workspace import OpWorkspace

SCHEMA = "perf_result"


def benchmark_operator(
    ws: OpWorkspace, *, progress: Hear | None = None, admitted: Admitted | None = None, pool: Pool | None = None, **wanted: Any
) -> dict[str, Any]:
    """Time an operator's integrated implementation and write eval/perf_result.json.

    Args:
        progress: called with each case's record as it is ready.
        admitted: where the caller has asked `admit` already.
        pool: where it is timed, as one job; default: on this machine. Proof is looked at, and the result written, here.
        **wanted: the fields of `Request`.

    Returns:
        The result, as it was written (`schemas/perf_result.schema.json`).

    Raises:
        ContractError: there is no sealed PASS of the whole suite for exactly these bytes, or a document is broken.
        InfraError: no requested mode is available, or the pool is lost.
    """
    request, pool = Request(**wanted), pool or Pool()
    admitted = admitted or admit(ws, request.modes, request.base, away=pool.away)
    contract, verdict, started = admitted.contract, admitted.verdict, time.monotonic()
    available, measured = measured_on(pool, admitted, request, progress)
    if stale := evidence.stale_hashes(verdict, evidence.file_hashes(ws), ws):
        raise ContractError(f"changed while it was timed: {', '.join(stale)}", file=ws.impl, remedy="verify and time it again")
    result = {
        "schema_version": 1,
        "tool": {"name": "pypto-op", "version": __version__},
        **_told(ws, request, contract, available, measured),
        "hashes": verdict["hashes"],
        "verdict_seal": verdict["seal"],
        "seconds": round(time.monotonic() - started, 3),
        "created": datetime.now(timezone.utc).isoformat(timespec="seconds"),
    }
    schema.check(result, SCHEMA, file=ws.perf_report)
    write_atomically(ws.perf_report, reports.serialise(result))
    history.note(ws, result)
    return result


def _told(
    ws: OpWorkspace, request: Request, contract: Contract, available: Mapping[Mode, Availability], measured: Measured
) -> dict[str, Any]:
    """Return what the result says of the kernel's times, of how they were taken, and of the machine."""
    subject, cases = resolve(ws, contract.total_modules), timed_cases(contract, request)
    usable, samples = [mode for mode, told in available.items() if told.ok], measured.samples
    rows = [_row(case, mode, samples.costs(case, mode), samples.fault(case, mode)) for case in cases for mode in usable]
    return {
        "op_name": ws.name,
        "impl_file": ws.impl.name,
        "wrapper": subject.wrapper,
        "modes": {str(mode): _mode_entry(mode, a, measured.states) for mode, a in available.items()},
        "repeats": request.repeats,
        "warmup": max(REGISTRY[mode].timing.warmup for mode in usable),
        **_counted(rows),
        "versions": {k: v for a in available.values() for k, v in a.versions.items()},
        "caveats": [c for mode in usable for c in (*REGISTRY[mode].timing.caveats, *available[mode].caveats)],
        "host": {"cpu_count": measured.cores, "load_before": measured.loads[0], "load_after": measured.loads[1]},
        **_compared(request, subject, measured, cases, usable),
    }


def _compared(
    request: Request, subject: Subject, measured: Measured, cases: Sequence[Mapping[str, Any]], usable: Sequence[Mode]
) -> dict[str, Any]:
    """Return what the result says of the kernel that this one is compared with; nothing where there is none."""
    if request.base is None or measured.base is None:
        return {}
    against = Against(subject, request.base, measured.base)
    return {"compared": against.result(cases, usable, measured.samples)}


def _counted(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the rows, and how many there are of which kind."""
    right = sum(row["status"] == "ok" for row in rows)
    return {"total_cases": len(rows), "passed_cases": right, "failed_cases": len(rows) - right, "per_shape_results": rows}


def _row(case: Mapping[str, Any], mode: Mode, costs: Costs, fault: str) -> dict[str, Any]:
    figure = REGISTRY[mode].timing.figure
    times = [float(cost[figure]) for _, cost in costs if figure in cost]
    if not times and not fault:
        fault = "the back end gave no time"
    dtype = case.get("dtype", "")
    names = sorted({name for _, cost in costs for name in cost})
    noise, across = spreads([(seed, float(cost[figure])) for seed, cost in costs if figure in cost])
    return {
        "case_id": str(case["id"]),
        "mode": str(mode),
        "label": label_of(case),
        "shape": dict(case.get("shape") or {}),
        "dtype": dtype if isinstance(dtype, str) else str(dtype.get("default", "")),
        "status": "failed" if fault else "ok",
        "reason": fault[:600],
        "median": statistics.median(times) if times else None,
        "minimum": min(times, default=None),
        "maximum": max(times, default=None),
        "spread": noise,
        "across_inputs": across,
        "samples": times,
        "cost": {name: statistics.median(float(c[name]) for _, c in costs if name in c) for name in names},
    }


def _mode_entry(mode: Mode, available: Availability, states: Sequence[Mapping[Mode, dict[str, str]]]) -> dict[str, Any]:
    timing = REGISTRY[mode].timing
    status = "timed" if available.ok else str(Status.SKIPPED)
    told = {f"state_{when}": at[mode] for when, at in zip(("before", "after"), states, strict=True) if mode in at}
    return {"status": status, "method": timing.method, "unit": timing.unit, "reason": available.reason[:600], **told}
