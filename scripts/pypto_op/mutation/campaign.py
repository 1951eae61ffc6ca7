"""A whole measurement: mutants, sabotage, likeness, and the report."""

from __future__ import annotations

import os
import secrets
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pypto_op.backends.base import Limits
from pypto_op.backends.launcher import cpu_seconds
from pypto_op.backends.sim import SimBackend
from pypto_op.errors import ContractError, InfraError
from pypto_op.judge import fresh
from pypto_op.judge.contract import Contract, load_contract
from pypto_op.judge.inputs import checks_precision
from pypto_op.judge.plan import Plan
from pypto_op.judge.redaction import Redactor
from pypto_op.judge.references import ReferenceLoss, References
from pypto_op.judge.subject import Subject, resolve
from pypto_op.mutation import sabotage
from pypto_op.mutation.cases import earlier, keep, table
from pypto_op.mutation.hunt import Fate, Hunt, Range, Result, ScratchWorkspace
from pypto_op.mutation.likeness import Likeness, Prober
from pypto_op.mutation.mutants import Mutant, in_turns, make_mutants
from pypto_op.mutation.operators.registry import select
from pypto_op.mutation.program import Program
from pypto_op.mutation.score import CONFIDENCE, lower_bound
from pypto_op.mutation.sittings import Sittings, Spent, digest
from pypto_op.mutation.trials import Order, make_trials, run_once
from pypto_op.proof import evidence
from pypto_op.vocabulary import Outcome, Status
from pypto_op.workspace import OpWorkspace

DEFAULT_SECONDS = 360.0
"""Time for mutants that a caller gives who says nothing else: a large kernel has 800, and one that lives takes a minute."""

DEFAULT_SEED = 20_260_131
"""Second seed of precision cases, and seed of samples: fixed, so that a score can be had again."""

Progress = Callable[[Mutant, Result, int], None]
Note = Callable[[str], None]


@dataclass(frozen=True)
class Wish:
    """What a caller wants measured.

    Attributes:
        operators: names of mutation operators; None: all.
        limit: the most mutants; chosen at random, the operators taking turns, so that rare ones are in. None: all.
        only: ids of the mutants, as an earlier report with the same operators named them; None: all.
        jobs: mutants at once.
        seed: of the sample, of the second trial, of the inputs for likeness.
        levels: only these levels of the suite.
        case: only this case.
        timeout: longest time of one run, in seconds; None: from the unchanged kernel's.
        likeness: compare survivors with the kernel, bit by bit.
        seconds: begin no further mutant so long after the beginning, the kernel's own run included, but for the first one of
            each job; those that were tried are a random sample. None: try all.
        all_cases: ask every case about each mutant that one has killed.
        resume: take over what earlier sittings on this machine found of the same mutants (`mutation.sittings`).
    """

    operators: Sequence[str] | None = None
    limit: int | None = None
    only: Sequence[str] | None = None
    jobs: int = 1
    seed: int = DEFAULT_SEED
    levels: Sequence[str] | None = None
    case: str | None = None
    timeout: float | None = None
    likeness: bool = True
    seconds: float | None = None
    all_cases: bool = False
    resume: bool = False

    def asked(self) -> dict[str, Any]:
        """Return, for `Sittings`, all that a mutant's fate depends on."""
        names = ("seed", "levels", "case", "timeout", "likeness", "all_cases")
        return {name: getattr(self, name) for name in names}


def measure(
    workspace: OpWorkspace, wish: Wish, progress: Progress | None = None, note: Note = lambda words: None
) -> dict[str, Any]:
    """Mutate an operator's kernel and run its suite against each mutant.

    Args:
        workspace: the operator; its implementation must pass its own suite.
        wish: what to measure.
        progress: called with each mutant, what became of it, and the number of mutants.
        note: told, in words, what is being done before there are mutants to tell of.

    Returns:
        The report, JSON-ready.

    Raises:
        ContractError: the operator's files, or the wish, make no measurement possible.
        InfraError: this machine cannot run kernels with numbers.
    """
    with ExitStack() as stack:
        campaign = _Campaign(workspace, wish, stack, note)
        return campaign.run(progress)


class _Campaign:
    def __init__(self, workspace: OpWorkspace, wish: Wish, stack: ExitStack, note: Note) -> None:
        self._wish, self._started, self._workspace, self._note = wish, time.monotonic(), workspace, note
        self._cpu = cpu_seconds()
        operators = select(wish.operators)
        contract = self._contract = load_contract(workspace)
        subject = self._subject = resolve(workspace, contract.total_modules)
        if not subject.impl.is_file():
            raise ContractError("there is no implementation to mutate", file=subject.impl, remedy="write it first")
        self._program = Program(subject.impl.read_text(encoding="utf-8"), subject.wrapper)
        self._mutants = make_mutants(self._program, operators)
        self._made = len(self._mutants)
        if wish.limit is not None:
            self._mutants = in_turns(self._mutants, wish.seed)[: wish.limit]
        if wish.only is not None:
            unknown = sorted(set(wish.only) - {mutant.id for mutant in self._mutants})
            if unknown:
                raise ContractError(f"there is no mutant {unknown[0]}", file=subject.impl, remedy="take ids from a report")
            self._mutants = [mutant for mutant in self._mutants if mutant.id in wish.only]
        if wish.seconds is not None:
            self._mutants = in_turns(self._mutants, wish.seed)
        if not self._mutants:
            raise ContractError("these operators find nothing to change in this kernel", file=subject.impl, remedy="use all")
        cases = [case for case in contract.select(wish.levels, wish.case) if checks_precision(case)]
        if wish.levels is None and wish.case is None:
            cases += fresh.draw(contract, wish.seed).cases
        if not cases:
            raise ContractError("no selected case compares numbers", file=workspace.suite, remedy="select others")
        backend = SimBackend()
        available = backend.availability()
        if not (available.ok and available.numeric):
            raise InfraError(f"mutants need numbers: {available.reason}", remedy="run `pypto-op doctor`")
        scratch = workspace.debug_dir / f"mutation-{secrets.token_hex(4)}"
        scratch.mkdir(parents=True)
        stack.callback(_remove, scratch)
        own = ScratchWorkspace.of(workspace, scratch)
        plan = _plan(contract, replace(subject, workspace=own), cases, wish.seed)
        references = References(plan, ReferenceLoss())
        stack.callback(references.close)
        self._redactor = Redactor(subject.golden, subject.impl)
        self._range = Range(subject, own, backend, Limits(case_seconds=wish.timeout or 120.0), self._redactor)
        note(f"the golden answers {len(cases)} cases")
        self._order = Order(make_trials(plan, references))
        self._order.remember(earlier(workspace))
        self._cases = cases
        self._prober = Prober(plan, contract.cases, references, self._redactor)
        self._stopped = False
        self._sittings = Sittings(evidence.file_hashes(workspace), wish.asked())
        self._before = self._sittings.spent() if wish.resume else Spent()
        fates = self._sittings.fates() if wish.resume else {}
        self._known = {mutant.id: fates[digest(mutant)] for mutant in self._mutants if digest(mutant) in fates}

    def run(self, progress: Progress | None) -> dict[str, Any]:
        self._baseline()
        self._note("a kernel that computes nothing runs")
        sabotaged = [self._sabotage(kind) for kind in sabotage.KINDS]
        self._note(f"{len(self._mutants)} mutants")
        found = dict(self._known)
        left = [mutant for mutant in self._mutants if mutant.id not in found]
        executor = ThreadPoolExecutor(max_workers=self._wish.jobs, thread_name_prefix="mutant")
        try:
            first = {mutant.id for mutant in left[: self._wish.jobs]}
            futures = {executor.submit(self._one, mutant, mutant.id in first): mutant for mutant in left}
            for future in as_completed(futures):
                mutant = futures[future]
                outcome = future.result()
                if outcome is None:
                    continue
                found[mutant.id] = outcome
                self._sittings.keep(mutant, outcome)
                if progress is not None:
                    progress(mutant, outcome[0], len(self._mutants))
        finally:
            self._stopped = True  # an interrupt must not wait for the mutants that are under way
            executor.shutdown(wait=True, cancel_futures=True)
            keep(self._workspace, self._order.seen())
            self._sittings.end(time.monotonic() - self._started, cpu_seconds() - self._cpu)
        return self._report(found, sabotaged)

    def _baseline(self) -> None:
        """Run the unchanged kernel: it must pass, and it tells what a trial costs."""
        with self._range.open("unchanged", self._program.source) as session:
            for number, trial in enumerate(self._order.trials, 1):
                self._note(f"the unchanged kernel runs trial {number} of {len(self._order.trials)}")
                begun = time.monotonic()
                run = run_once(session, trial.case, trial.inputs)
                trial.seconds, trial.outputs = time.monotonic() - begun, run.outputs
                verdict = trial.judge(run, self._redactor)
                if verdict.status is not Status.PASS:
                    raise ContractError(
                        f"the unchanged kernel does not pass case {trial.case} with seed {trial.seed}: {verdict.summary}",
                        file=self._subject.impl,
                        remedy="only a suite that the kernel passes can be measured; run `pypto-op verify`",
                    )
            self._range.keep(session)
        if self._wish.timeout is None:
            slowest = max(trial.seconds for trial in self._order.trials)
            limits = replace(self._range.limits, case_seconds=max(10.0, 20.0 * slowest))
            self._range = replace(self._range, limits=limits)

    def _one(self, mutant: Mutant, first: bool) -> tuple[Result, Likeness | None, float] | None:
        """Hunt one mutant; None when the time was over before. The `first` ones run all the same, so a slow kernel gets some."""
        begun = time.monotonic()
        if not first and self._wish.seconds is not None and begun - self._started > self._wish.seconds:
            return None
        likeness = None
        with self._range.open(mutant.id, mutant.source) as session:
            pursuit = Hunt(session, self._order, self._redactor, lambda: self._stopped, mutant.operator)
            result = pursuit.run(spare=self._wish.likeness)
            if result.fate is Fate.SURVIVED and result.differing:
                result = pursuit.run()
            if result.fate is Fate.KILLED and self._wish.all_cases:
                result = pursuit.killers(result)
            if result.fate is Fate.SURVIVED and self._wish.likeness and not self._stopped:
                kernel = partial(self._range.open, "kernel", self._program.source)
                likeness = self._prober.compare(session, kernel, result.trials, result.differing)
                if not likeness.differing:
                    return replace(result, fate=Fate.EQUIVALENT, detail=likeness.sentence()), likeness, time.monotonic() - begun
                result = pursuit.run()
                if result.fate is Fate.SURVIVED:
                    result = replace(result, detail=likeness.sentence())
        return result, likeness, time.monotonic() - begun

    def _sabotage(self, kind: str) -> dict[str, Any]:
        """Run a kernel that computes nothing; every trial that lets it pass is counted."""
        try:
            source = sabotage.sabotaged(self._program, kind)
        except ValueError as error:
            return {"kind": kind, "ran": False, "refused": False, "detail": str(error), "cases": []}
        passed, reasons, ran = [], set(), False
        with self._range.open(f"sabotage-{kind}", source) as session:
            for trial in _one_per_case(self._order):
                run = run_once(session, trial.case, trial.inputs)
                ran = ran or run.outcome is Outcome.OK
                verdict = trial.judge(run, self._redactor)
                reasons |= set(map(str, verdict.reasons))
                if verdict.status is Status.PASS:
                    passed.append(trial.case)
        detail = "every case refuses it" if not passed else f"{len(passed)} cases let it pass"
        return {
            "kind": kind,
            "ran": ran,
            "refused": ran and not passed,
            "detail": detail if ran else "pypto refuses it",
            "reasons": sorted(reasons),
            "cases": passed,
        }

    def _report(self, found: dict[str, tuple[Result, Likeness | None, float]], sabotaged: list[dict[str, Any]]) -> dict[str, Any]:
        count = {fate: sum(result.fate is fate for result, _, _ in found.values()) for fate in Fate}
        tried = count[Fate.KILLED] + count[Fate.SURVIVED]
        trials = self._order.trials
        return {
            "schema_version": 1,
            "op_name": self._subject.workspace.name,
            **{str(fate): count[fate] for fate in Fate},
            "score": count[Fate.KILLED] / tried if tried else None,
            "lower_bound": lower_bound(count[Fate.KILLED], tried) if tried else None,
            "confidence": CONFIDENCE,
            "sabotage": sabotaged,
            "hashes": evidence.file_hashes(self._workspace),
            "operators": list(self._wish.operators) if self._wish.operators is not None else None,
            "made": self._made,
            "limit": self._wish.limit if len(found) == len(self._mutants) else len(found),
            "only": list(self._wish.only) if self._wish.only is not None else None,
            "likeness": self._wish.likeness,
            "cases": len(self._cases),
            "kills_by_case": _kills_by_case(found),
            "by_case": table(self._cases, [result for result, _, _ in found.values()]),
            "trials": len(trials),
            "seed": self._wish.seed,
            "jobs": self._wish.jobs,
            "resumed": len(self._known),
            "sittings": self._before.count + 1,
            "seconds": round(self._before.seconds + time.monotonic() - self._started, 3),
            "load": round(os.getloadavg()[0], 1),
            "cpu_seconds": round(self._before.cpu_seconds + cpu_seconds() - self._cpu, 1),
            "mutants": [
                _entry(mutant, *found[mutant.id]) for mutant in sorted(self._mutants, key=lambda m: m.id) if mutant.id in found
            ],
        }


def _plan(contract: Contract, subject: Subject, cases: Sequence[Mapping[str, Any]], seed: int) -> Plan:
    """Return the judge's plan without back ends; this room opens its own."""
    return Plan(
        subject=subject,
        cases=cases,
        backends={},
        available={},
        policy_for=contract.policy_for,
        natural_policy_for=contract.natural_policy_for,
        tolerance_behind=contract.tolerance_behind,
        leaf_names=contract.leaf_names(subject.phase),
        input_names=contract.input_names,
        extra_seed=seed,
    )


def _one_per_case(order: Order) -> list[Any]:
    return list({trial.case: trial for trial in reversed(order.trials)}.values())


def _kills_by_case(found: dict[str, tuple[Result, Likeness | None, float]]) -> dict[str, int]:
    kills: dict[str, int] = {}
    for result, _, _ in found.values():
        if result.case is not None:
            kills[result.case] = kills.get(result.case, 0) + 1
    return dict(sorted(kills.items(), key=lambda item: (-item[1], item[0])))


def _entry(mutant: Mutant, result: Result, likeness: Likeness | None, seconds: float) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "id": mutant.id,
        "operator": mutant.operator,
        "line": mutant.line,
        "diff": mutant.diff,
        "status": str(result.fate),
        "reason": result.reason,
        "detail": result.detail,
        "killed_by": result.case,
        "seed": result.seed,
        "killers": list(result.killers) if result.asked else None,
        "cases_asked": result.asked or None,
        "trials": result.trials,
        "seconds": round(seconds, 3),
    }
    if likeness is not None:
        entry["likeness"] = {
            "probes": likeness.probes,
            "differing": likeness.differing,
            "wrong_on": likeness.wrong_on,
            "worst": likeness.worst,
        }
    return entry


def _remove(scratch: Any) -> None:
    shutil.rmtree(scratch, ignore_errors=True)
    if scratch.parent.is_dir() and not any(scratch.parent.iterdir()):
        scratch.parent.rmdir()
