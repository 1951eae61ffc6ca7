"""From the verdicts of cases to the verdict of the whole: aggregation rules of the verifier seed, B.4."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pypto_op.judge.cases.inspection import onset
from pypto_op.judge.cases.subject import Subject
from pypto_op.judge.findings.reasons import LOAD_FAILURES, Reason
from pypto_op.judge.findings.records import CaseRecord, TrialVerdict
from pypto_op.modes import REGISTRY
from pypto_op.vocabulary import FailureCategory, Fingerprint, Mode, Status

_BAD = (Status.FAIL, Status.ERROR)


def mode_status(records: Sequence[CaseRecord], mode: Mode) -> Status:
    """Return the worst status of the cases in `mode`.

    ERROR > FAIL > PASS > SKIPPED, with one exception: PASS means that every case passed and that numbers were compared.
    A mode that could not judge some of its cases, or compared no number, and found nothing wrong, is SKIPPED.
    """
    cells = [record.modes[mode] for record in records]
    statuses = [cell.status for cell in cells]
    worst = Status.worst(statuses)
    compared = any(trial.precision_checked for cell in cells for trial in cell.trials)
    return Status.SKIPPED if worst is Status.PASS and (Status.SKIPPED in statuses or not compared) else worst


def fingerprint(record: CaseRecord) -> Fingerprint | None:
    """Return the pattern of a failing case across modes.

    None when fewer than two modes gave a verdict: what the other mode would have said is not known. None too where the
    modes on the host, or those on a device, disagree among themselves. A file that cannot be loaded fails everywhere, so
    that one is always `all_fail`.
    """
    if any(_loads_nowhere(r.deciding) for r in record.modes.values()):
        return Fingerprint.ALL_FAIL
    judged = {mode: r.status in _BAD for mode, r in record.modes.items() if r.status is not Status.SKIPPED}
    if len(judged) < 2:
        return None
    if all(judged.values()):
        return Fingerprint.ALL_FAIL
    host, device = ({bad for mode, bad in judged.items() if REGISTRY[mode].on_device is where} for where in (False, True))
    if host == {True} and device == {False}:
        return Fingerprint.IR_DIVERGENCE
    return Fingerprint.KERNEL_OK_NPU_ONLY if host == {False} and device == {True} else None


def _loads_nowhere(trial: TrialVerdict | None) -> bool:
    return bool(trial and trial.reasons and trial.reasons[0] in LOAD_FAILURES)


def overall_status(records: Sequence[CaseRecord], per_mode: Mapping[Mode, Status]) -> Status:
    """Return the status of the report.

    PASS: no mode is FAIL or ERROR, at least one is PASS, so it compared numbers, and no case went without a verdict.
    ERROR: no case could be run or judged in any mode, or the workspace (inputs, golden) failed on one. FAIL: everything
    else.
    """
    cells = [r for record in records for r in record.modes.values() if r.status is not Status.SKIPPED]
    if not cells or any(cell.workspace_fault for cell in cells):
        return Status.ERROR
    if all(cell.deciding and _loads_nowhere(cell.deciding) for cell in cells):
        return Status.ERROR
    if any(status in _BAD for status in per_mode.values()):
        return Status.FAIL
    return Status.PASS if Status.PASS in per_mode.values() else Status.ERROR


def first_failure(records: Sequence[CaseRecord], subject: Subject, producers: Mapping[str, int]) -> dict[str, Any] | None:
    """Return the report's `first_failure`, or None when nothing failed.

    Args:
        producers: leaf name -> id of the module that makes it.
    """
    bad_ones = [r for r in records if r.status in _BAD]
    if not bad_ones:
        return None
    # What the machine had no memory for says nothing of the candidate; a case that was judged does.
    record = next((r for r in bad_ones if not is_unheld(r)), bad_ones[0])
    mode, trial = _worst_trial(record)
    pattern = fingerprint(record)
    bad = _earliest(trial.bad_outputs, producers)
    drift = onset(trial.per_iter)
    return {
        "case_id": record.id,
        "failing_module_boundary": subject.boundary,
        "failure_category": str(trial.category or FailureCategory.OTHER),
        "divergence_fingerprint": str(pattern) if pattern else None,
        "summary": f"{mode}: {trial.summary}",
        "mode": str(mode),
        "reason": str(trial.reasons[0]) if trial.reasons else None,
        "seed": trial.seed,
        "first_bad_output": bad,
        "first_bad_producer": producers.get(bad or ""),
        "cpu_reproducer_candidate": trial.near_miss,
        **({} if drift is None else {"drift_onset_iter": drift}),
    }


def is_unheld(record: CaseRecord) -> bool:
    """Whether the machine had too little memory for a case, so that it was not judged."""
    return any(cell.deciding and Reason.NO_MEMORY_LEFT in cell.deciding.reasons for cell in record.modes.values())


def _earliest(bad: Sequence[str], producers: Mapping[str, int]) -> str | None:
    """Return the wrong output whose module comes first; later outputs may be wrong because of that one.

    Where every output that modules before M_k made is right, that is an output of M_k.
    """
    return min(bad, key=lambda name: (producers.get(name, len(producers) + 1), bad.index(name)), default=None)


def _worst_trial(record: CaseRecord) -> tuple[Mode, TrialVerdict]:
    """Return the mode and trial that head the verdict: the case's status, then the reason that decides earliest."""
    candidates = [(mode, r.deciding) for mode, r in record.modes.items() if r.status is record.status]
    return min(
        ((mode, trial) for mode, trial in candidates if trial is not None),
        key=lambda pair: pair[1].reasons[0].rank if pair[1].reasons else len(Reason),
    )


def unjudged_sentence(records: Sequence[CaseRecord]) -> str:
    """Say in one sentence why no mode gave a verdict."""
    trials = [r.deciding for record in records for r in record.modes.values()]
    summaries = dict.fromkeys(trial.summary for trial in trials if trial is not None)
    return "; ".join(summaries) or "no case was judged"
