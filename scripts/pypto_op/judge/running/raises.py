"""Calls that SPEC.md says the wrapper refuses: it must raise ValueError before it launches anything.

A refusal of the suite (`raises`) names a fault. Inputs are drawn as for any case of that shape and dtype, then the fault is made.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pypto_op.backends import debris
from pypto_op.backends.base import RunResult, Session
from pypto_op.backends.memory import NoMemoryLeft
from pypto_op.backends.reference import ReferenceSession
from pypto_op.errors import ContractError, InfraError
from pypto_op.judge.answers.verdict import refuse
from pypto_op.judge.findings.reasons import Reason
from pypto_op.judge.findings.records import CaseRecord, ModeRecord, TrialVerdict
from pypto_op.vocabulary import Level, Mode, Outcome, Status

if TYPE_CHECKING:
    from pypto_op.backends.base import Value
    from pypto_op.judge.answers.plan import Plan

KEY = "raises"


def judge_raises(plan: Plan, refusals: Sequence[Mapping[str, Any]]) -> list[CaseRecord]:
    """Call the wrapper on each fault, in every mode that is there; the records come back in order.

    Raises:
        InfraError: the reference process cannot run.
    """
    records: list[CaseRecord] = []
    if not refusals:
        return records
    subject = plan.subject
    with ReferenceSession(subject.workspace, limits=plan.limits) as references:
        drawn = [(told, _inputs(references, told)) for told in refusals]
    for told, _ in drawn:
        modes = {mode: ModeRecord(mode) for mode in plan.backends}
        records.append(CaseRecord(refusal_case(told), (int(told.get("seed", 0)),), modes))
    for mode, backend in plan.backends.items():
        if not plan.available[mode].ok:
            _all(records, mode, refuse(Reason.UNAVAILABLE, plan.available[mode].reason))
            continue
        try:
            with backend.open(subject.impl, subject.wrapper, subject.workspace, limits=plan.limits) as session:
                for record, (_, inputs) in zip(records, drawn, strict=True):
                    started = time.monotonic()
                    record.modes[mode].trials.append(_verdict(session, record.id, inputs))
                    record.seconds += time.monotonic() - started
                plan.loaded.note_all(session.loaded)
        except NoMemoryLeft:
            raise
        except InfraError as error:
            _all(records, mode, refuse(Reason.UNAVAILABLE, error.problem))
    for record in records:
        ended = [trial.status for mode in record.modes.values() for trial in mode.trials]
        if Status.PASS in ended and Status.FAIL not in ended:  # raising was right: no failure that a debugger should read
            debris.forget(subject.workspace, record.id)
    return records


def refusal_case(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return a refusal of the suite as the case that a report has of it."""
    return {**told, "level": str(Level.L3), "precision": False, KEY: told["fault"]}


def faulty(inputs: Sequence[tuple[str, Value]], told: Mapping[str, Any]) -> list[Value]:
    """Return inputs with the fault of a refusal.

    Args:
        inputs: name and value of each, in order, drawn for its shape; `size` is a fault of that shape already.

    Raises:
        ContractError: it names an input that there is not, or that cannot have the fault.
    """
    import torch

    fault, wanted = told["fault"], told.get("input")
    values: list[Value] = []
    met = fault == "size"
    for name, value in inputs:
        made = value
        tensor = value if isinstance(value, torch.Tensor) else None
        if fault == "scalar" and name == wanted:
            made = told["value"]
        elif fault == "dtype" and tensor is not None and (name == wanted or (wanted is None and tensor.is_floating_point())):
            made = torch.zeros(tensor.shape, dtype=torch.int32)
        elif fault == "non_contiguous" and tensor is not None and name == wanted and tensor.numel() > 1:
            made = torch.stack([tensor, tensor], dim=-1)[..., 0]  # every other element of a larger tensor
        elif fault == "rank" and tensor is not None and name == wanted:
            made = tensor.unsqueeze(0)
        elif fault == "shape" and tensor is not None and name == wanted and tensor.numel():
            made = torch.cat([tensor, tensor.narrow(told["axis"], 0, 1)], dim=told["axis"])  # longer than what it goes with
        met = met or made is not value
        values.append(made)
    if not met:
        raise ContractError(f"{fault} cannot be a fault of {wanted or 'any input'}", where=f"raises {told['id']}")
    return values


def _inputs(references: ReferenceSession, told: Mapping[str, Any]) -> list[Value] | TrialVerdict:
    try:
        return faulty(references.make_inputs({**told, "level": str(Level.L3)}), told)
    except ContractError as error:
        return refuse(Reason.INPUTS_FAILED, error.where or told["id"])


def _verdict(session: Session, name: str, inputs: list[Value] | TrialVerdict) -> TrialVerdict:
    if isinstance(inputs, TrialVerdict):
        return inputs
    run = session.run(name, inputs)
    if run.outcome is Outcome.EXCEPTION and _error_type(run) == "ValueError" and not run.launches:
        return TrialVerdict(0, Status.PASS)
    if run.outcome is Outcome.OK:
        return refuse(Reason.NOT_REFUSED, "it returned")
    if run.outcome is Outcome.EXCEPTION:
        launched = ", after it had launched a kernel" if run.launches else ""
        return refuse(Reason.NOT_REFUSED, f"it raised {_error_type(run)}{launched}")
    return refuse(Reason.NOT_REFUSED, f"it ended with: {run.outcome}")


def _error_type(run: RunResult) -> str:
    """Return the type's name in `FILE:LINE: TYPE: words`."""
    return next((part for part in run.detail.split(": ")[1:2]), "")


def _all(records: Sequence[CaseRecord], mode: Mode, verdict: TrialVerdict) -> None:
    for record in records:
        record.modes[mode].trials.append(verdict)
