"""A whole measurement: mutants, sabotage, likeness, and the report."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Collection
from contextlib import ExitStack
from functools import partial
from typing import Any

from pypto_op.backends.launcher import cpu_seconds
from pypto_op.errors import ContractError
from pypto_op.mutation import sabotage
from pypto_op.mutation.away import MutantsWork
from pypto_op.mutation.cases import keep, table
from pypto_op.mutation.field import DEFAULT_SEED, Field, Note, Outcome, Wish
from pypto_op.mutation.hunt import Fate, Result
from pypto_op.mutation.likeness import Likeness
from pypto_op.mutation.mutants import Mutant, in_turns, make_mutants
from pypto_op.mutation.operators.registry import select
from pypto_op.mutation.score import CONFIDENCE, lower_bound
from pypto_op.mutation.sittings import Sittings, Spent, digest
from pypto_op.mutation.trials import Order, run_once
from pypto_op.pool.parcel import Parcel
from pypto_op.pool.pool import Pool
from pypto_op.pool.work import Job, Say
from pypto_op.proof import evidence
from pypto_op.vocabulary import Outcome as Ending
from pypto_op.vocabulary import Status
from pypto_op.workspace import OpWorkspace

__all__ = ["DEFAULT_SECONDS", "DEFAULT_SEED", "Wish", "measure"]

DEFAULT_SECONDS = 360.0
"""Time for mutants that a caller gives who says nothing else: a large kernel has 800, and one that lives takes a minute."""

_CALLS_OF_A_COMPARISON = 80
"""A mutant that lives is compared with the kernel without a word between: fewer calls than this."""

Progress = Callable[[Mutant, Result, int], None]


def measure(
    workspace: OpWorkspace,
    wish: Wish,
    progress: Progress | None = None,
    note: Note = lambda words: None,
    pool: Pool | None = None,
) -> dict[str, Any]:
    """Mutate an operator's kernel and run its suite against each mutant.

    Args:
        workspace: the operator; its implementation must pass its own suite.
        progress: called with each mutant, what became of it, and the number of mutants.
        note: told, in words, what is being done before there are mutants to tell of.
        pool: where mutants run; default: on this machine.

    Returns:
        The report, JSON-ready.

    Raises:
        ContractError: the operator's files, or the wish, make no measurement possible.
        InfraError: this machine cannot run kernels with numbers, or the pool is lost; what was found is kept for `resume`.
    """
    with ExitStack() as stack:
        campaign = _Campaign(workspace, wish, stack, note, pool or Pool())
        return campaign.run(progress)


class _Chase:
    """Mutants as jobs."""

    def __init__(self, field: Field, workspace: OpWorkspace, wish: Wish) -> None:
        self._field, self._workspace, self._wish = field, workspace, wish
        self.silence = _CALLS_OF_A_COMPARISON * field.range.limits.case_seconds

    def here(self, payload: Mutant, say: Say) -> Outcome:
        """Hunt one mutant in this process."""
        return self._field.hunt(payload, say)

    def away(self) -> MutantsWork:
        """Return how mutants are hunted elsewhere."""
        return MutantsWork(Parcel.of(self._workspace.root), self._wish)

    def stop(self) -> None:
        """Let the mutants that are under way end with their next trial."""
        self._field.stopped = True


class _Campaign:
    def __init__(self, workspace: OpWorkspace, wish: Wish, stack: ExitStack, note: Note, pool: Pool) -> None:
        self._wish, self._started, self._workspace, self._note = wish, time.monotonic(), workspace, note
        self._cpu, self._pool = cpu_seconds(), pool
        operators = select(wish.operators)
        field = self._field = Field(workspace, wish, stack, note)
        self._mutants = make_mutants(field.program, operators)
        self._made = len(self._mutants)
        self._mutants = _chosen(self._mutants, wish, field)
        field.lay_out()
        self._sittings = Sittings(evidence.file_hashes(workspace), wish.asked())
        self._before = self._sittings.spent() if wish.resume else Spent()
        fates = self._sittings.fates() if wish.resume else {}
        self._known = {mutant.id: fates[digest(mutant)] for mutant in self._mutants if digest(mutant) in fates}

    def run(self, progress: Progress | None) -> dict[str, Any]:
        self._field.run_unchanged()
        sabotaged = [self._sabotage(kind) for kind in sabotage.KINDS]
        self._note(f"{len(self._mutants)} mutants")
        found = dict(self._known)
        jobs = [Job(mutant.id, mutant) for mutant in self._mutants if mutant.id not in found]
        wanted = partial(self._wanted, {job.key for job in jobs[: self._wish.jobs]})  # so that a slow kernel gets some
        chase = _Chase(self._field, self._workspace, self._wish)
        try:
            with contextlib.closing(self._pool.run(chase, jobs, size=self._wish.jobs, wanted=wanted)) as done:
                for job, outcome in done:
                    found[job.key] = outcome
                    self._sittings.keep(job.payload, outcome)
                    if progress is not None:
                        progress(job.payload, outcome[0], len(self._mutants))
        finally:
            keep(self._workspace, self._field.order.seen())
            self._sittings.end(time.monotonic() - self._started, cpu_seconds() - self._cpu)
        return self._report(found, sabotaged)

    def _wanted(self, first: Collection[str], job: Job) -> bool:
        """Whether a mutant is still to be hunted: not when the time is over."""
        return job.key in first or self._wish.seconds is None or time.monotonic() - self._started <= self._wish.seconds

    def _sabotage(self, kind: str) -> dict[str, Any]:
        """Run a kernel that computes nothing; every trial that lets it pass is counted."""
        try:
            source = sabotage.sabotaged(self._field.program, kind)
        except ValueError as error:
            return {"kind": kind, "ran": False, "refused": False, "detail": str(error), "cases": []}
        passed, reasons, ran = [], set(), False
        trials = _one_per_case(self._field.order)
        with self._field.range.open(f"sabotage-{kind}", source) as session:
            for number, trial in enumerate(trials, 1):
                self._note(f"a kernel that computes nothing ({kind}) runs case {number} of {len(trials)}")
                run = run_once(session, trial.case, trial.inputs)
                ran = ran or run.outcome is Ending.OK
                verdict = trial.judge(run, self._field.redactor)
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

    def _report(self, found: dict[str, Outcome], sabotaged: list[dict[str, Any]]) -> dict[str, Any]:
        count = {fate: sum(result.fate is fate for result, _, _ in found.values()) for fate in Fate}
        tried = count[Fate.KILLED] + count[Fate.SURVIVED]
        trials = self._field.order.trials
        return {
            "schema_version": 1,
            "op_name": self._field.subject.workspace.name,
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
            "cases": len(self._field.cases),
            "kills_by_case": _kills_by_case(found),
            "by_case": table(self._field.cases, [result for result, _, _ in found.values()]),
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


def _chosen(mutants: list[Mutant], wish: Wish, field: Field) -> list[Mutant]:
    """Return the mutants that are to be tried, in the order in which they are.

    Raises:
        ContractError: there is none, or one that was named.
    """
    if wish.limit is not None:
        mutants = in_turns(mutants, wish.seed)[: wish.limit]
    if wish.only is not None:
        unknown = sorted(set(wish.only) - {mutant.id for mutant in mutants})
        if unknown:
            raise ContractError(f"there is no mutant {unknown[0]}", file=field.subject.impl, remedy="take ids from a report")
        mutants = [mutant for mutant in mutants if mutant.id in wish.only]
    if wish.seconds is not None:
        mutants = in_turns(mutants, wish.seed)
    if not mutants:
        raise ContractError("these operators find nothing to change in this kernel", file=field.subject.impl, remedy="use all")
    return mutants


def _one_per_case(order: Order) -> list[Any]:
    return list({trial.case: trial for trial in reversed(order.trials)}.values())


def _kills_by_case(found: dict[str, Outcome]) -> dict[str, int]:
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
            "outside": likeness.outside,
        }
    return entry
