"""The trials that a mutant may die of: every case of the suite with each of its seeds, made and answered once.

Inputs and goldens do not depend on the mutant, so they are computed once and kept; a mutant costs only its own run.
The judge's rule that the golden is computed after the candidate ran is for candidates that want to cheat. A mutant
is made here.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pypto_op.backends.base import FILLINGS
from pypto_op.errors import ContractError
from pypto_op.judge.answers.expectation import Expectation, Reference
from pypto_op.judge.answers.plan import Plan
from pypto_op.judge.answers.references import References
from pypto_op.judge.answers.verdict import judge_run
from pypto_op.judge.cases.inputs import FRESH, checks_precision, digest, seeds_of, with_seed
from pypto_op.judge.findings.records import TrialVerdict
from pypto_op.judge.findings.redaction import Redactor

if TYPE_CHECKING:
    import torch

    from pypto_op.backends.base import RunResult, Session, Value

_OWN_KIND = 4
"""By how much a mutant of the same kind of fault counts more than another."""
_MOST_REMEMBERED = 8
"""Mutants that an earlier campaign counts for: enough to begin with, few enough to be overruled."""


@dataclass
class Trial:
    """One case with one seed."""

    case: str  # the case's id
    seed: int  # of its inputs
    inputs: Sequence[Value]  # what the wrapper is called with
    reference: Reference  # what the golden answers
    expectation: Expectation  # what the case wants
    outputs: Sequence[torch.Tensor] = ()  # what the unchanged kernel returns
    seconds: float = 1.0  # how long it takes
    kills: int = 0  # mutants that it has killed so far
    runs: int = 0  # mutants that it was tried on so far
    by_kind: dict[str, tuple[int, int]] = field(default_factory=dict)  # kind of fault -> the same two numbers, of this campaign

    def worth(self, kind: str = "") -> float:
        """Return the kills to expect for a second of work; what it did to mutants of the same kind counts more."""
        kills, runs = self.by_kind.get(kind, (0, 0))
        likely = (self.kills + 1 + _OWN_KIND * kills) / (self.runs + 2 + _OWN_KIND * runs)
        return likely / max(self.seconds, 0.01)

    def judge(self, run: RunResult, redactor: Redactor) -> TrialVerdict:
        """Return the judge's verdict on a run of this trial."""
        return judge_run(run, self.reference, self.expectation, seed=self.seed, redactor=redactor, secrets=())


@dataclass
class Order:
    """Decides which trial is tried next, and learns from each; shared by all workers."""

    trials: Sequence[Trial]
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def next(self, tried: set[int], kind: str = "") -> int | None:
        """Return the index of the trial that promises most among those not in `tried`, for a mutant of some kind."""
        with self._lock:
            left = [i for i in range(len(self.trials)) if i not in tried]
            return max(left, key=lambda i: self.trials[i].worth(kind), default=None)

    def remember(self, kills: Mapping[str, Sequence[int]]) -> None:
        """Begin with what earlier campaigns saw: case -> (mutants that it killed, mutants that it was tried on)."""
        for trial in self.trials:
            killed, tried = kills.get(trial.case, (0, 0))
            if tried:
                trial.runs = min(tried, _MOST_REMEMBERED)
                trial.kills = round(trial.runs * killed / tried)

    def seen(self) -> dict[str, tuple[int, int]]:
        """Return, for `remember`, what this campaign saw and what it began with."""
        found: dict[str, tuple[int, int]] = {}
        for trial in self.trials:
            kills, runs = found.get(trial.case, (0, 0))
            found[trial.case] = (kills + trial.kills, runs + trial.runs)
        return found

    def learn(self, index: int, killed: bool, kind: str = "") -> None:
        """Remember how a trial went with a mutant of some kind."""
        with self._lock:
            trial = self.trials[index]
            trial.runs += 1
            trial.kills += killed
            kills, runs = trial.by_kind.get(kind, (0, 0))
            trial.by_kind[kind] = (kills + killed, runs + 1)


def make_trials(plan: Plan, references: References) -> list[Trial]:
    """Return the trials of a plan, as the judge would make them.

    Raises:
        ContractError: inputs or golden of a case cannot be had.
    """
    trials = []
    for case in plan.cases:
        seen: set[str] = set()
        for seed in seeds_of(case, plan.extra_seed):
            inputs = references.inputs(with_seed(case, seed))
            if (key := digest(inputs)) not in seen:
                seen.add(key)
                found = references.answer(inputs, expectation := expectation_of(plan, case))
                problem = found.problem()
                if problem and case.get(FRESH):
                    continue  # a drawn case that the golden does not answer says nothing of a kernel
                if problem:
                    file, where = plan.subject.golden, f"case {case['id']}"
                    raise ContractError(f"the golden gave no reference: {problem}", file=file, where=where)
                trials.append(Trial(str(case["id"]), seed, inputs, found, expectation))
    return trials


def one_per_kind(trials: Sequence[Trial]) -> list[Trial]:
    """Return the trial with the fewest elements for each combination of dtypes and scalars: those decide what is compiled."""
    chosen: dict[str, Trial] = {}
    for trial in sorted(trials, key=lambda trial: sum(map(_elements, trial.inputs))):
        chosen.setdefault(repr([getattr(value, "dtype", value) for value in trial.inputs]), trial)
    return list(chosen.values())


def _elements(value: Value) -> int:
    import torch

    return value.numel() if isinstance(value, torch.Tensor) else 0


def run_once(session: Session, case: str, inputs: Sequence[Value]) -> RunResult:
    """Run a kernel whose author is known: without the second run that shows what a host computed, which takes as long."""
    return session.run(case, inputs, guess=True, filling=FILLINGS[0])


def expectation_of(plan: Plan, case: Mapping[str, Any]) -> Expectation:
    """Return what a case expects of a run."""
    return Expectation(
        names=plan.leaf_names,
        input_names=plan.input_names,
        policy=plan.policy_for(case),
        precision=checks_precision(case),
        natural=plan.natural_policy_for(case),
        behind=plan.tolerance_behind(case),
        either=bool(case.get(FRESH)),
    )
