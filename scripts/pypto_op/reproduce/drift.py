"""By how much a kernel missed on a case: read from its report, else measured by running the case."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pypto_op.errors import ContractError, InfraError, PyptoOpError
from pypto_op.judge.cases.request import Request
from pypto_op.judge.cases.subject import Subject
from pypto_op.judge.verify import verify_operator
from pypto_op.modes import devices_first
from pypto_op.proof import evidence
from pypto_op.vocabulary import FailureCategory, Mode, Status
from pypto_op.workspace import OpWorkspace

REPORT = "reproduce_report.json"
"""Report of a run that `reproduce` made itself, in `_debug/`."""


@dataclass(frozen=True)
class KernelDrift:
    """A failing case, as it was judged."""

    mode: Mode  # where it failed
    seed: int  # the seed of the trial that failed
    reasons: tuple[str, ...]  # the judge's words for what is wrong
    per_tensor: tuple[Mapping[str, Any], ...]  # metrics of each output that was compared
    near_miss: bool  # the judge's flag `cpu_reproducer_candidate`
    fresh: bool  # the case was run for this, no report was at hand

    @property
    def failing(self) -> list[Mapping[str, Any]]:
        """The outputs that are out of tolerance."""
        return [leaf for leaf in self.per_tensor if not leaf["all_close"]]


def kernel_drift(
    ws: OpWorkspace, subject: Subject, case_id: str, *, mode: Mode | None = None, again: bool = False, drawn: bool = False
) -> KernelDrift:
    """Return how a case fails: from `eval/evaluation_report.json` when it is about these bytes, else by running it.

    Args:
        mode: where; None: the first mode in which it fails, the device before the simulator.
        again: run it even if there is a report.
        drawn: a verdict drew the case; it is run on the draw of the last report, where there is one.

    Raises:
        ContractError: the case passes, or it fails for another reason than its numbers.
        InfraError: no mode can run it here.
    """
    check = None if again else _reported(ws, subject, case_id)
    fresh = check is None
    report: Mapping[str, Any] = {}
    if check is None:
        modes = (mode,) if mode is not None else tuple(Mode)
        seed, to = _drawn_with(ws) if drawn else None, ws.debug_dir / REPORT
        report = verify_operator(ws, Request(modes, subject.impl, subject.phase, case=case_id, report=to, seed=seed))
        check = _check_of(report, case_id)
        if check is None:
            raise _not_run(report, case_id)
    return _failure(check, ws, mode, fresh)


def _drawn_with(ws: OpWorkspace) -> int | None:
    """Return the seed of the draws of the operator's last report; None where it has none."""
    try:
        told = evidence.read_report(ws.report).get("fresh_shapes")
    except PyptoOpError:
        return None
    seed = told.get("seed") if isinstance(told, dict) else None
    return seed if isinstance(seed, int) and seed >= 0 else None


def _reported(ws: OpWorkspace, subject: Subject, case_id: str) -> Mapping[str, Any] | None:
    try:
        report = evidence.read_report(ws.report)
    except PyptoOpError:
        return None
    now = evidence.file_hashes(ws, subject.phase, impl=subject.impl)
    stale = evidence.stale_hashes(report, now, ws)
    if stale or not evidence.check_seal(report) or report.get("wrapper") != subject.wrapper:
        return None
    return _check_of(report, case_id)


def _check_of(report: Mapping[str, Any], case_id: str) -> Mapping[str, Any] | None:
    return next((check for check in report["checks"] if check["id"] == case_id), None)


def _not_run(report: Mapping[str, Any], case_id: str) -> PyptoOpError:
    error = report.get("error") or {"kind": "infra", "message": "no reason was told"}
    kind = InfraError if error["kind"] == "infra" else ContractError
    return kind(f"case {case_id} could not be judged: {error['message']}")


def _failure(check: Mapping[str, Any], ws: OpWorkspace, wanted: Mode | None, fresh: bool) -> KernelDrift:
    name, modes = check["id"], check["modes"]
    order = [wanted] if wanted is not None else devices_first()
    failed = [m for m in order if m in modes and modes[m]["status"] in (Status.FAIL, Status.ERROR)]
    if not failed:
        states = ", ".join(f"{m}: {result['status']}" for m, result in modes.items())
        raise ContractError(
            f"case {name} does not fail ({states}), so there is nothing to reproduce",
            file=ws.report,
            remedy="name a case that fails, or verify again",
        )
    mode = failed[0]
    result = modes[mode]
    if result["failure_category"] != FailureCategory.PRECISION or not result["per_tensor"]:
        raise ContractError(
            f"case {name} fails for another reason than its numbers: {result['reason']}",
            remedy="mend that first; there is no rounding to analyse",
        )
    reasons = tuple(result["reasons"])
    return KernelDrift(
        mode=Mode(mode),
        seed=int(result["seeds"][-1]),  # a trial that fails is the last one
        reasons=reasons,
        per_tensor=tuple(result["per_tensor"]),
        near_miss=bool(result.get("cpu_reproducer_candidate")),
        fresh=fresh,
    )
