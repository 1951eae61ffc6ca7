"""What a command that times kernels refuses from documents and evidence alone, before torch is imported."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pypto_op.backends.base import Availability
from pypto_op.backends.registry import get_backend
from pypto_op.errors import ContractError, InfraError
from pypto_op.judge.cases.contract import Contract, load_contract
from pypto_op.proof import evidence
from pypto_op.vocabulary import Mode, Status
from pypto_op.workspace import OpWorkspace, typed


@dataclass(frozen=True)
class Admitted:
    """An operator that may be timed."""

    contract: Contract  # the operator's
    verdict: Mapping[str, Any]  # the sealed PASS for exactly the bytes that lie there
    modes: Sequence[Mode]  # where it is to be timed
    available: Mapping[Mode, Availability]  # what each of them says of itself here; {} where another machine is asked

    def refuse_machine(self, available: Mapping[Mode, Availability]) -> None:
        """Raise for a machine on which this operator cannot be timed.

        Raises:
            ContractError: the PASS says nothing about a mode that could run.
            InfraError: no mode could.
        """
        usable = [mode for mode, told in available.items() if told.ok]
        if not usable:
            reasons = "; ".join(f"{mode}: {told.reason}" for mode, told in available.items())
            raise InfraError(f"no requested mode is available ({reasons})", remedy="run `pypto-op doctor`")
        refuse_unjudged(self.contract.workspace, self.verdict, usable)


def availability(modes: Sequence[Mode]) -> dict[Mode, Availability]:
    """Return what each mode says of this machine."""
    return {mode: get_backend(mode).availability() for mode in modes}


def admit(ws: OpWorkspace, modes: Sequence[Mode], base: Path | None = None, *, away: bool = False) -> Admitted:
    """Say whether an operator may be timed; an earlier result is gone in any case.

    Args:
        modes: where it is to be timed; one that is not available is left out.
        base: a kernel to compare with; None for none.
        away: another machine times it: what that one can do, it says itself (`Admitted.refuse_machine`).

    Raises:
        ContractError: there is no sealed PASS of the whole suite for exactly these bytes, or a document is broken.
        InfraError: no mode is available here, where it is timed here.
    """
    ws.perf_report.unlink(missing_ok=True)  # a result that does not belong to these bytes must not survive
    contract = load_contract(ws)
    admitted = Admitted(contract, whole_pass(ws, contract), modes, {} if away else availability(modes))
    if not away:
        admitted.refuse_machine(admitted.available)
    if base is not None:
        _refuse_base(ws, base)
    return admitted


def whole_pass(ws: OpWorkspace, contract: Contract, mode: Mode | None = None) -> dict[str, Any]:
    """Return the sealed PASS of the whole suite, under the operator's own tolerance, for the bytes that lie there now.

    Args:
        mode: where it must have passed; None: wherever.

    Raises:
        ContractError: there is none.
    """
    if not ws.impl.is_file():
        raise ContractError("the implementation is missing", file=ws.impl, remedy="write and verify it first")
    passes = list(evidence.sealed_passes(ws, partial=True))
    if not passes:
        remedy = f"run `pypto-op verify {typed(ws.root)}` first"
        raise ContractError("there is no sealed PASS for exactly these bytes", file=ws.impl, remedy=remedy)
    whole = [p for p in passes if p["status"] == Status.PASS and p["policy"] == contract.policy.as_dict()]
    if not whole:
        raise ContractError(
            "what passed is PARTIAL: a part of the suite only, or another tolerance than SPEC.md's",
            file=ws.report,
            remedy=f"run `pypto-op verify {typed(ws.root)}` without --levels, --case and --policy",
        )
    if mode is None:
        return whole[0]
    there = [report for report in whole if report["per_mode_status"].get(mode) == Status.PASS]
    if not there:
        refuse_unjudged(ws, whole[0], [mode])
    return there[0]


def refuse_unjudged(ws: OpWorkspace, verdict: Mapping[str, Any], modes: Iterable[Mode]) -> None:
    """Raise ContractError for the first mode that a PASS says nothing about."""
    for mode in modes:
        status = verdict["per_mode_status"].get(mode, Status.SKIPPED)
        if status != Status.PASS:
            raise ContractError(
                f"the PASS says nothing about {mode}, where it is {status}",
                file=ws.report,
                remedy=f"run `pypto-op verify {typed(ws.root)} --modes {mode}` first",
            )


def numeric_mode(wanted: Mode | None) -> Mode:
    """Return the mode that times a kernel and compares its numbers: the one named, else a device, else the simulator.

    Raises:
        InfraError: it is not available, or computes no numbers here.
    """
    reasons = []
    for mode in (wanted,) if wanted is not None else (Mode.NPU, Mode.SIM):
        available = get_backend(mode).availability()
        if available.ok and available.numeric:
            return mode
        reasons.append(f"{mode}: {available.reason}")
    raise InfraError(f"no mode can time a kernel and compare its numbers ({'; '.join(reasons)})", remedy="run `pypto-op doctor`")


def _refuse_base(ws: OpWorkspace, base: Path) -> None:
    if not base.is_file():
        raise ContractError("no such kernel to compare with", file=base, remedy="name a file with --compare")
    if next(evidence.sealed_passes(ws, impl=base), None) is None:
        report = typed(evidence.evidence_dir(ws) / "base.json")
        remedy = f"run `pypto-op verify {typed(ws.root)} --impl {typed(base)} --report {report}` first"
        raise ContractError("there is no sealed PASS for the kernel to compare with", file=base, remedy=remedy)
