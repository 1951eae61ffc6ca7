"""`pypto-op verify --sweep`: each staged file M_1..M_K at its own boundary, to find the smallest k that is wrong.

A direct-mode verdict says only that the boundary it looked at is wrong. Here the frozen files of the earlier phases
are judged as well, each against its own golden, so that `smallest_failing_module` is a true one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from pypto_op.documents import interfaces as interfaces_document
from pypto_op.documents.writing import write_atomically
from pypto_op.errors import ContractError
from pypto_op.judge.cases.request import Request
from pypto_op.judge.reporting import report as reports
from pypto_op.judge.verify import Progress, verify_operator
from pypto_op.vocabulary import ExitCode, Status
from pypto_op.workspace import OpWorkspace, parse_phase

SWEEP_DIR = "sweep"
_TOLD = ("status", "per_mode_status", "cases_total", "cases_passed", "first_failure", "error", "impl_file", "seconds")

Told = Callable[[int, Mapping[str, Any]], None]


def sweep(
    ws: OpWorkspace, request: Request, *, told: Told | None = None, progress: Progress | None = None
) -> tuple[dict[str, Any], ExitCode]:
    """Judge every phase up to M_K; no phase is spared because an earlier one failed.

    Args:
        request: how each is judged; its `up_to_module` is K, None: the last phase whose impl lies there.
        told: called with k and its report as soon as it is there.
        progress: as of `verify_operator`.

    Returns:
        schema_version, op_name, up_to_module, total_modules, status (the worst), smallest_failing_module (None when
        all pass), boundaries: [{up_to_module, report, status, per_mode_status, first_failure, ...}], and the exit code.
        Each boundary's whole report lies under `_debug/sweep/`; eval/evaluation_report.json is not touched.

    Raises:
        ContractError: there are no modules to sweep over.
        InfraError: a report cannot be written.
    """
    wiring = interfaces_document.load(ws.interfaces)
    last = _last(ws, wiring.total_modules, request.up_to_module)
    folder = ws.debug_dir / SWEEP_DIR
    boundaries, codes = [], []
    for k in range(1, last + 1):
        path = folder / f"M{k}.json"
        report = verify_operator(ws, replace(request, up_to_module=k, report=path), progress=progress)
        boundaries.append({"up_to_module": k, "report": str(path.relative_to(ws.root)), **{key: report[key] for key in _TOLD}})
        codes.append(reports.exit_code(report))
        if told is not None:
            told(k, report)
    wrong = [row["up_to_module"] for row in boundaries if not Status(row["status"]).passed]
    result = {
        "schema_version": 1,
        "op_name": ws.name,
        "up_to_module": last,
        "total_modules": wiring.total_modules,
        "status": str(Status.worst([Status(row["status"]) for row in boundaries])),
        "smallest_failing_module": min(wrong, default=None),
        "boundaries": boundaries,
    }
    write_atomically(folder / "sweep.json", json.dumps(result, indent=2, ensure_ascii=False) + "\n")
    return result, max(codes)


def _last(ws: OpWorkspace, total: int, asked: int | str | None) -> int:
    if total == 1:
        raise ContractError("has one module: there is nothing to sweep over", file=ws.interfaces, remedy="leave --sweep out")
    if asked is not None:
        k = parse_phase(str(asked))
        if k > total:
            raise ContractError(f"there is no M{k}: the operator has {total} module(s)", file=ws.interfaces)
        return k
    there = [k for k in ws.existing_module_phases() if k <= total]
    if not there:
        raise ContractError("holds no staged impl", file=ws.modules_dir, remedy="write M1 first (coder)")
    return max(there)
