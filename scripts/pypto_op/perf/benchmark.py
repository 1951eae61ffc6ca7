"""`benchmark_operator`: how fast a kernel is, shape by shape, once there is a PASS for exactly its bytes."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from pypto_op import __version__
from pypto_op.backends.base import Availability, Backend, Limits, TellsState
from pypto_op.documents import schema
from pypto_op.documents.writing import write_atomically
from pypto_op.errors import ContractError
from pypto_op.judge import report as reports
from pypto_op.judge.contract import Contract
from pypto_op.judge.inputs import checks_precision, fresh_seed
from pypto_op.judge.plan import Plan
from pypto_op.judge.records import CaseRecord
from pypto_op.judge.runner import run_cases
from pypto_op.judge.subject import Subject, resolve
from pypto_op.modes import REGISTRY
from pypto_op.perf import history
from pypto_op.perf.admission import Admitted, admit
from pypto_op.perf.samples import Against, Costs, Samples, spreads
from pypto_op.proof import evidence
from pypto_op.vocabulary import Mode, Status
from pypto_op.workspace import OpWorkspace

SCHEMA = "perf_result"


@dataclass(frozen=True)
class Request:
    """What is to be timed.

    Attributes:
        modes: where.
        levels: levels of the suite whose shapes are taken; default: L2 and L4, the ordinary and the long ones.
        repeats: how often each input is run, each time in a process of its own; one of a shape's two inputs has values that
            nobody has seen, and every run is checked against the golden.
        base: a kernel to compare with, which has a PASS too; None: nothing is compared.
        limits: what the candidate may use.
    """

    modes: Sequence[Mode] = tuple(Mode)
    levels: Sequence[str] = ("L2", "L4")
    repeats: int = 1
    base: Path | None = None
    limits: Limits = field(default_factory=Limits)


def benchmark_operator(
    ws: OpWorkspace,
    *,
    progress: Callable[[CaseRecord], None] | None = None,
    admitted: Admitted | None = None,
    **wanted: Any,
) -> dict[str, Any]:
    """Time an operator's integrated implementation and write eval/perf_result.json.

    Args:
        ws: the operator.
        progress: called with each case's record as it is ready.
        admitted: where the caller has asked `admit` already.
        **wanted: the fields of `Request`.

    Returns:
        The result, as it was written (`schemas/perf_result.schema.json`).

    Raises:
        ContractError: there is no sealed PASS of the whole suite for exactly these bytes, or a document is broken.
        InfraError: no requested mode is available.
    """
    request = Request(**wanted)
    admitted = admitted or admit(ws, request.modes, request.base)
    contract, verdict, usable = admitted.contract, admitted.verdict, admitted.usable
    subject = resolve(ws, contract.total_modules)
    started, load_before, states = time.monotonic(), _load(), [_states(usable)]
    cases = _one_per_shape(contract.select(request.levels, None))
    seed, samples = fresh_seed(), Samples()
    against = Against.of(subject, request.base) if request.base is not None else None
    for turn in range(request.repeats):
        order = [(subject, samples)] if against is None else against.order(subject, samples, turn)
        for one, into in order:
            _time(one, contract, cases, usable, admitted.available, request, seed, into, progress)
    rows = [_row(case, mode, samples.costs(case, mode), samples.fault(case, mode)) for case in cases for mode in usable]
    if stale := evidence.stale_hashes(verdict, evidence.file_hashes(ws), ws):
        raise ContractError(f"changed while it was timed: {', '.join(stale)}", file=ws.impl, remedy="verify and time it again")
    states.append(_states(usable))
    result = {
        "schema_version": 1,
        "tool": {"name": "pypto-op", "version": __version__},
        "op_name": ws.name,
        "impl_file": ws.impl.name,
        "wrapper": subject.wrapper,
        "modes": {str(mode): _mode_entry(mode, a, states) for mode, a in admitted.available.items()},
        "repeats": request.repeats,
        "warmup": max(REGISTRY[mode].timing.warmup for mode in usable),
        **_counted(rows),
        "hashes": verdict["hashes"],
        "verdict_seal": verdict["seal"],
        "versions": {k: v for a in admitted.available.values() for k, v in a.versions.items()},
        "caveats": [c for mode in usable for c in (*REGISTRY[mode].timing.caveats, *admitted.available[mode].caveats)],
        "host": {"cpu_count": os.cpu_count() or 1, "load_before": load_before, "load_after": _load()},
        "seconds": round(time.monotonic() - started, 3),
        "created": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        **({} if against is None else {"compared": against.result(cases, usable, samples)}),
    }
    schema.check(result, SCHEMA, file=ws.perf_report)
    write_atomically(ws.perf_report, reports.serialise(result))
    history.note(ws, result)
    return result


def _counted(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the rows, and how many there are of which kind."""
    right = sum(row["status"] == "ok" for row in rows)
    return {"total_cases": len(rows), "passed_cases": right, "failed_cases": len(rows) - right, "per_shape_results": rows}


def _one_per_shape(cases: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the first case of each shape and dtype whose numbers are compared, small shapes first."""
    chosen: dict[str, Mapping[str, Any]] = {}
    for case in cases:
        if checks_precision(case):
            chosen.setdefault(_label(case), case)
    if not chosen:
        raise ContractError("no case of these levels compares numbers", remedy="name other --levels")
    return sorted(chosen.values(), key=_size)


def _size(case: Mapping[str, Any]) -> int:
    product = 1
    for value in (case.get("shape") or {}).values():
        product *= value if isinstance(value, int) else 1
    return product


def _label(case: Mapping[str, Any]) -> str:
    dtype = case.get("dtype", "")
    word = dtype.get("default", "") if isinstance(dtype, Mapping) else dtype
    shape = ", ".join(f"{name}={value}" for name, value in (case.get("shape") or {}).items())
    return f"{shape} {word}".strip()


def _time(
    subject: Subject,
    contract: Contract,
    cases: Sequence[Mapping[str, Any]],
    backends: Mapping[Mode, Backend],
    available: Mapping[Mode, Availability],
    request: Request,
    seed: int,
    into: Samples,
    progress: Callable[[CaseRecord], None] | None,
) -> None:
    """Run every case once on each of its inputs, in fresh processes, and note what each run took."""
    plan = Plan(
        subject=subject,
        cases=cases,
        backends=backends,
        available=available,
        policy_for=contract.policy_for,
        leaf_names=contract.leaf_names(subject.phase),
        input_names=contract.input_names,
        extra_seed=seed,
        limits=request.limits,
        cost_model=True,
        further=False,
    )
    for record in run_cases(plan, progress):
        into.note(record)


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
        "label": _label(case),
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


def _states(backends: Mapping[Mode, Backend]) -> dict[Mode, dict[str, str]]:
    """Return what hardware says of its clock, temperature and power: a ratio of two clocks is no gain."""
    return {mode: backend.state() for mode, backend in backends.items() if isinstance(backend, TellsState)}


def _load() -> float | None:
    try:
        return round(os.getloadavg()[0], 2)
    except OSError:
        return None
