"""`verify_operator`: from an operator's directory to a sealed verdict."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from pypto_op.backends.base import Availability, Backend
from pypto_op.backends.memory import REMEDY
from pypto_op.backends.reference import check_inputs_there
from pypto_op.backends.registry import get_backend
from pypto_op.documents import schema
from pypto_op.documents import suite as suite_document
from pypto_op.documents.knobs import is_drawn_id
from pypto_op.errors import ContractError, InfraError, PyptoOpError
from pypto_op.hashing import sha256_file
from pypto_op.judge.answers.plan import Plan, plan_without_backends
from pypto_op.judge.cases import extent, fresh, variety
from pypto_op.judge.cases.calling import used_inputs
from pypto_op.judge.cases.contract import Contract, load_contract
from pypto_op.judge.cases.inputs import FRESH, fresh_seed
from pypto_op.judge.cases.inspection import probe_of
from pypto_op.judge.cases.request import Request
from pypto_op.judge.cases.subject import Subject, resolve
from pypto_op.judge.findings import summary
from pypto_op.judge.findings.error_maps import ErrorMaps
from pypto_op.judge.findings.faults import error_of, inputs_fault, reason_before, sentence_of_missing
from pypto_op.judge.findings.reasons import Reason
from pypto_op.judge.findings.records import CaseRecord
from pypto_op.judge.reporting import report as reports
from pypto_op.judge.running.away import LanesWork
from pypto_op.judge.running.raises import KEY as RAISES
from pypto_op.judge.running.runner import MOST_JOBS, run_cases, worker_count
from pypto_op.locks import Lock
from pypto_op.proof import evidence
from pypto_op.proof.closure import Loaded, stale_closure
from pypto_op.proof.draws import Draws, judged_on
from pypto_op.vocabulary import ExitCode, Mode, Status
from pypto_op.workspace import OpWorkspace, check_runnable

Progress = Callable[[CaseRecord, int], None]


def verify_operator(ws: OpWorkspace, request: Request | None = None, *, progress: Progress | None = None) -> dict[str, Any]:
    """Judge an implementation and write the report; every problem but a senseless request ends in a report too.

    Args:
        request: what is wanted; None: every case, in every mode.
        progress: called with each case's record and the number of cases, in no particular order.

    Returns:
        The report, sealed, as it was written; `judge.reporting.report.exit_code` turns it into an exit code.

    Raises:
        ContractError: no mode was named, or `report` is a file that is no earlier report.
        InfraError: the report cannot be written or sealed, or another verification kept it for too long.
    """
    request = request or Request()
    reports.check_target(path := request.report or ws.report, own=ws.report)
    with _turn(ws, path):
        return _Verification(ws, request).run(progress)


def _turn(ws: OpWorkspace, path: Path) -> contextlib.AbstractContextManager[object]:
    """Return what keeps the operator's own report for one verification at a time: the other's verdict would replace it."""
    if path.absolute() != ws.report.absolute():
        return contextlib.nullcontext()
    try:
        ws.debug_dir.mkdir(exist_ok=True)
    except OSError:  # whoever writes the report says what is wrong
        return contextlib.nullcontext()
    remedy = "wait for it, or let this one write elsewhere with --report FILE"
    return Lock(
        ws.debug_dir / f".{ws.report.name}.lock",
        busy=InfraError("another verification of this operator is running", file=ws.report, remedy=remedy),
    )


def judge_case(
    ws: OpWorkspace,
    case: Mapping[str, Any],
    *,
    modes: Sequence[Mode],
    impl: Path | str | None = None,
    up_to_module: int | str | None = None,
) -> CaseRecord:
    """Judge one case that need not be in the suite; nothing is written but what runs leave behind.

    Raises:
        ContractError: a document, the golden or the case is malformed, a file is missing, or the inputs do not vary.
        InfraError: no mode is available, or the reference process cannot run.
    """
    document = {"schema_version": 1, "op": ws.name, "total_modules": 1, "cases": [dict(case)]}
    schema.check(document, "adversarial_suite")
    only = suite_document.build(document, "the given case").cases[0]
    request = Request(modes, impl, up_to_module, only=only)
    verification = _Verification(ws, request)
    contract, _ = verification.prepared()
    (record,) = verification.judged(None, fresh_seed())
    variety.check([(record.case, record.variety)], whole=False, single=contract.single_valued)
    return record


def plan_of(ws: OpWorkspace, request: Request, cases: Sequence[Mapping[str, Any]], seed: int) -> Plan:
    """Return the plan by which `verify_operator` would judge these cases; raise what makes that impossible."""
    verification = _Verification(ws, request)
    verification.prepared()
    return verification.plan(cases, seed)


class _Verification:
    """One verification: holds what is known so far, so that a failure at any step can be reported."""

    def __init__(self, ws: OpWorkspace, request: Request) -> None:
        self.ws, self.request = ws, request
        self.path = request.report or ws.report
        self.started = time.monotonic()
        self.subject: Subject | None = None
        self.contract: Contract | None = None
        self.available: dict[Mode, Availability] = {}
        self.hashes: dict[str, str] = {}
        self.ran: list[Mapping[str, Any]] = []
        self.loaded = Loaded()
        self.fresh: fresh.Drawn | None = None
        self.fresh_seed: int | None = None

    def run(self, progress: Progress | None) -> dict[str, Any]:
        kept = evidence.keep_whole(self.ws, self.path)
        # Whatever ends this run, no earlier verdict is left standing here, and at no moment is there none.
        reports.publish(self._failed(InfraError(evidence.INTERRUPTED, remedy="run it again")), self.path)
        try:
            contract, subject = self.prepared()
            hashes = self.hashes | {"policy": evidence.policy_hash(contract.policy.as_dict())}
            draws = None if self.request.inspect is not None else Draws(self.ws, subject.boundary, hashes, subject.impl)
            result = judged_on(draws, self.request.seed, fresh_seed(), lambda seed: self._verdict(self.judged(progress, seed)))
        except PyptoOpError as error:
            result = self._failed(error)
        if kept is not None and not self.request.is_part:  # the kernel was asked anew
            kept.unlink(missing_ok=True)
        result["seconds"] = round(time.monotonic() - self.started, 3)
        return reports.publish(result, self.path)

    # -- the steps ------------------------------------------------------------------------------------------

    def judged(self, progress: Progress | None, seed: int) -> list[CaseRecord]:
        """Judge the selected cases of what is `prepared` on a seed; raise what makes that impossible."""
        request, contract, subject = self.request, *self._ready
        cases = self._cases(contract, subject, seed)
        plan = self.plan(cases, seed)
        whole = not any((request.levels, request.case, request.inspect, request.only, subject.phase))
        raises = contract.suite.raises if whole else ()
        away = partial(LanesWork.of, plan_of, self.ws, request, cases, seed, raises)
        told = None if progress is None else lambda record: progress(record, len(cases))
        records = run_cases(plan, told, request.pool, away, raises, self.available.update)
        records = self._without_unfit(self._within_memory(records, contract, seed))
        self._refuse_mixed_up(subject)
        return records

    def prepared(self) -> tuple[Contract, Subject]:
        """Read the documents; raise ContractError where they, or the implementation, are not there."""
        request, documents = self.request, self._documents()
        self.contract = contract = load_contract(self.ws, request.policy, suite=request.suite)
        self.subject = subject = resolve(self.ws, contract.total_modules, impl=request.impl, up_to=request.up_to_module)
        self.hashes = self._hashes(subject) | documents  # of before they were read, so that a change since then shows
        if not subject.impl.is_file():
            staged = self.ws.existing_module_phases() if subject.phase is None else []
            remedy = f"a module is judged with `--up-to-module {staged[-1]}`" if staged else "write it (coder), then verify"
            raise ContractError(sentence_of_missing(subject), file=self._shown(subject.impl), remedy=remedy)
        check_inputs_there(self.ws)
        check_runnable(self.ws.root)
        return contract, subject

    @property
    def _ready(self) -> tuple[Contract, Subject]:
        assert self.contract is not None and self.subject is not None  # since it is `prepared`
        return self.contract, self.subject

    def plan(self, cases: Sequence[Mapping[str, Any]], seed: int) -> Plan:
        """Return the plan for these cases; raise InfraError where this machine can run none of the modes."""
        request, contract, subject = self.request, *self._ready
        backends: dict[Mode, Backend] = {mode: get_backend(mode) for mode in dict.fromkeys(request.modes)}
        self.available = {mode: backend.availability() for mode, backend in backends.items()}
        away = request.pool is not None and request.pool.away  # its machines say what they can do
        if not away and not any(a.ok for a in self.available.values()):
            reasons = "; ".join(f"{mode}: {a.reason}" for mode, a in self.available.items())
            raise InfraError(f"no requested mode is available ({reasons})", remedy="run `pypto-op doctor`")
        on_cluster = request.pool is not None and bool(request.pool.address.host)
        return replace(
            plan_without_backends(contract, subject, cases, seed),
            backends=backends,
            available=self.available,
            fixed_inputs=contract.fixed_inputs,
            limits=request.limits,
            suite=contract.cases,
            jobs=request.jobs or (MOST_JOBS if on_cluster else worker_count(contract.cases)),
            error_maps=ErrorMaps(self.ws, self.hashes["impl"]) if request.error_maps else None,
            used_inputs=used_inputs(contract.interfaces, subject.phase),
            nan_is_legal=contract.nan_is_legal,
            probe=probe_of(request.inspect, subject.boundary) if request.inspect is not None else None,
            loaded=self.loaded,
        )

    def _refuse_mixed_up(self, subject: Subject) -> None:
        """Raise ContractError where golden or inputs loaded what they judge, or a file changed while it was being judged."""
        if asked := self.loaded.reference_loads(self.ws):
            raise ContractError(
                "is loaded by the golden or by the inputs, which must not know it",
                file=self._shown(asked),
                remedy="let them compute for themselves",
            )
        ran = {"impl": subject.impl, "golden": subject.golden, "inputs": self.ws.test_inputs}
        other = {name for name, path in ran.items() if self.loaded.saw_other(path, self.hashes[name])}
        changed = sorted(k for k, v in self._hashes(subject).items() if self.hashes.get(k) != v or k in other)
        changed += stale_closure(self._closure(), self.ws.root)
        if changed:
            raise ContractError(
                f"changed while it was being judged: {', '.join(changed)}",
                file=self._shown(subject.impl),
                remedy="let nothing write these files, then verify again",
            )

    def _cases(self, contract: Contract, subject: Subject, seed: int) -> list[Mapping[str, Any]]:
        """Return the cases that were asked for; beside a whole suite, those that only this verdict knows (`fresh`)."""
        request = self.request
        if request.only is not None:
            return [request.only]
        if request.case is not None and is_drawn_id(request.case, [case["id"] for case in contract.cases]):
            self.fresh, only = fresh.drawn(request.case, contract, seed, subject.impl)
            self.fresh_seed = seed
            return [only]
        chosen: list[Mapping[str, Any]] = contract.select(request.levels, request.case)
        if request.suite is None and request.inspect is None and len(chosen) == len(contract.cases):
            self.fresh, self.fresh_seed = fresh.draw(contract, seed, subject.impl), seed
            chosen = [*chosen, *self.fresh.cases]
        return chosen

    def _within_memory(self, records: Sequence[CaseRecord], contract: Contract, seed: int) -> list[CaseRecord]:
        """Return the records; a drawn case that the simulator cannot hold is judged at smaller sizes, and the last one stands.

        Raises:
            InfraError: the machine has too little memory even for those, or for another case, and nothing else is wrong.
        """
        kept = []
        starved = any(summary.is_unheld(record) for record in records if not record.case.get(FRESH))
        for record in records:
            while record.case.get(FRESH) and record.lack_of_memory and not starved:
                case = fresh.smaller(record.case, contract, seed)
                if case is None or self.fresh is None:
                    break
                axis, short = str(case["id"]), record.lack_of_memory is Reason.NO_MEMORY_LEFT
                why = "the simulator needs more memory than " + ("the machine has left" if short else "it may have")
                self.fresh.left_out[f"{axis} at {record.case['shape']}"] = why
                record = run_cases(self.plan([case], seed), None)[0]
            kept.append(record)
        unheld = [record for record in kept if summary.is_unheld(record) and not self._is_of_the_build(record)]
        if unheld and not any(record.status in _BAD for record in kept if record not in unheld):
            raise InfraError(f"case {unheld[0].id}: {summary.unjudged_sentence(unheld)}", remedy=REMEDY)
        return kept

    def _without_unfit(self, records: Sequence[CaseRecord]) -> list[CaseRecord]:
        """Return the records but those of drawn cases that golden or inputs are not made for; these are told.

        So is a case of other sizes of the build at which the candidate raises or ends: who calls it there sees that.
        """
        kept = []
        for record in records:
            at_fault = [cell.deciding for cell in record.modes.values() if cell.workspace_fault]
            at_fault += record.only_ended if self._is_of_the_build(record) else []
            if record.case.get(FRESH) and at_fault and at_fault[0] is not None and self.fresh is not None:
                self.fresh.left_out[record.id] = at_fault[0].summary
            else:
                kept.append(record)
        return kept

    def _is_of_the_build(self, record: CaseRecord) -> bool:
        return self.fresh is not None and record.id == self.fresh.of_the_build

    def _hashes(self, subject: Subject) -> dict[str, str]:
        return evidence.file_hashes(self.ws, subject.phase, impl=subject.impl) | self._documents()

    def _documents(self) -> dict[str, str]:
        files = {"suite": self.request.suite or self.ws.suite, "interfaces": self.ws.interfaces, "spec": self.ws.spec}
        return {name: sha256_file(path) for name, path in files.items()}

    def _closure(self) -> dict[str, dict[str, str]]:
        """Return what was loaded beside the named files; a file that is both stands under `hashes` alone."""
        ws, subject = self.ws, self.subject
        named = [ws.spec, ws.interfaces, ws.test_inputs, self.request.suite or ws.suite]
        return self.loaded.closure(ws, [*named, *((subject.impl, subject.golden) if subject is not None else ())])

    def _shown(self, path: Path) -> str:
        return str(path.relative_to(self.ws.root)) if path.is_relative_to(self.ws.root) else str(path)

    # -- the report -----------------------------------------------------------------------------------------

    def _base(self) -> dict[str, Any]:
        subject, request = self.subject, self.request
        wanted = Path(request.impl) if request.impl is not None else self.ws.impl
        result = reports.skeleton(
            subject,
            self.ws.name,
            self._shown(subject.impl if subject else wanted),
            subject.wrapper if subject else self.ws.wrapper_name(),
        )
        result["policy"] = self.contract.policy.as_dict() if self.contract else result["policy"]
        hashes = self.hashes or evidence.file_hashes(self.ws, impl=wanted if request.impl is not None else None)
        result["hashes"] = {**hashes, "policy": evidence.policy_hash(result["policy"])}
        result["closure"] = self._closure()
        result["selection"] = extent.selection_of(
            self.contract,
            self.ran,
            levels=request.levels,
            case=request.case,
            suite=request.suite,
            inspect=request.inspect,
            seed=request.seed,
        )
        untried = self.contract.untried if self.contract else ()
        result["modes"] = {str(mode): reports.mode_entry(a, untried) for mode, a in self.available.items()}
        result["versions"] = {k: v for a in self.available.values() for k, v in a.versions.items()}
        return result

    def _verdict(self, records: Sequence[CaseRecord]) -> dict[str, Any]:
        contract, subject = self._ready
        self.ran = [record.case for record in records if RAISES not in record.case]
        result = self._base()
        per_mode = {mode: summary.mode_status(records, mode) for mode in self.available}
        status = summary.overall_status(records, per_mode)
        checks = [reports.check_entry(record, contract.policy_label(record.case)) for record in records]
        result.update(
            status=str(extent.named(status, result["selection"])),
            checks=checks,
            cases_total=len(records),
            cases_passed=sum(record.status is Status.PASS for record in records),
            cases_skipped=sum(record.status is Status.SKIPPED for record in records),
            cases_precision=sum(check["precision_checked"] for check in checks),
            per_mode_status=extent.named_modes(per_mode, result["selection"]),
            first_failure=summary.first_failure(records, subject, contract.producers(subject.phase)),
            stdout=reports.candidate_output(records),
        )
        if self.fresh is not None and self.fresh_seed is not None:
            result["fresh_shapes"] = reports.fresh_entry(records, self.fresh_seed, self.fresh.left_out)
        if fault := inputs_fault(records, contract, own_suite=self.request.suite is None):
            judged = [mode for mode, said in result["per_mode_status"].items() if said != Status.SKIPPED]
            result.update(status=str(Status.ERROR), error=fault)
            result["per_mode_status"] |= dict.fromkeys(judged, str(Status.ERROR))
        elif status is Status.ERROR:
            idle = all(record.status is Status.PASS for record in records)
            result["error"] = extent.nothing_compared(contract, self.ran) if idle else error_of(records, subject.golden)
        return result

    def _failed(self, error: PyptoOpError) -> dict[str, Any]:
        kind, category = ("infra", "infra") if error.exit_code is ExitCode.INFRA else ("contract", "structural")
        result = self._base()
        result["error"] = {"kind": kind, "message": error.one_line()}
        result["per_mode_status"] = {
            str(mode): str(Status.SKIPPED if mode in self.available and not self.available[mode].ok else Status.ERROR)
            for mode in self.request.modes
        }
        result["first_failure"] = reports.failure_without_case(
            self.subject, category, error.one_line(), reason_before(error, self.subject)
        )
        return result


_BAD = (Status.FAIL, Status.ERROR)
