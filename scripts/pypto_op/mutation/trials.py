"""The trials that a mutant may die of: every case of the suite with each of its seeds, made and answered once.

Inputs and goldens do not depend on the mutant, so they are computed once and kept; a mutant costs only its own run.
The judge's rule that the golden is computed after the candidate ran is for candidates that want to cheat. A mutant
is made here.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pypto_op.backends.reference import ReferenceSession
from pypto_op.errors import ContractError
from pypto_op.judge.barrier import Barrier
from pypto_op.judge.contract import Contract
from pypto_op.judge.inputs import checks_precision, digest, seeds_of, with_seed
from pypto_op.judge.records import TrialVerdict
from pypto_op.judge.subject import Subject
from pypto_op.judge.verdict import Expectation, Reference, judge_run

if TYPE_CHECKING:
    from pypto_op.backends.base import RunResult, Value


@dataclass
class Trial:
    """One case with one seed.

    Attributes:
        case: the case's id.
        seed: of its inputs.
        inputs: what the wrapper is called with.
        reference: what the golden answers.
        expectation: what the case wants.
        seconds: how long the unchanged kernel takes.
        kills: mutants that it has killed so far.
        runs: mutants that it was tried on so far.
    """

    case: str
    seed: int
    inputs: Sequence[Value]
    reference: Reference
    expectation: Expectation
    seconds: float = 1.0
    kills: int = 0
    runs: int = 0

    @property
    def worth(self) -> float:
        """Kills to expect for a second of work."""
        return (self.kills + 1) / (self.runs + 2) / max(self.seconds, 0.01)

    def judge(self, run: RunResult, barrier: Barrier) -> TrialVerdict:
        """Return the judge's verdict on a run of this trial."""
        return judge_run(run, self.reference, self.expectation, seed=self.seed, barrier=barrier, secrets=())


@dataclass
class Order:
    """Decides which trial is tried next, and learns from each; shared by all workers."""

    trials: Sequence[Trial]
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def next(self, tried: set[int]) -> int | None:
        """Return the index of the trial that promises most among those not in `tried`."""
        with self._lock:
            left = [i for i in range(len(self.trials)) if i not in tried]
            return max(left, key=lambda i: self.trials[i].worth, default=None)

    def learn(self, index: int, killed: bool) -> None:
        """Remember how a trial went."""
        with self._lock:
            self.trials[index].runs += 1
            self.trials[index].kills += killed


def make_trials(
    contract: Contract, subject: Subject, reference: ReferenceSession, cases: Sequence[Mapping[str, Any]], seed: int
) -> list[Trial]:
    """Return the trials of `cases`, as the judge would make them.

    Args:
        contract: the operator's documents.
        subject: what is judged.
        reference: runs golden and input maker.
        cases: of the suite.
        seed: the second seed of precision cases.

    Raises:
        ContractError: inputs or golden of a case cannot be had.
    """
    trials = []
    for case in cases:
        seen: set[str] = set()
        for own in seeds_of(case, seed):
            inputs = [value for _, value in reference.make_inputs(with_seed(case, own))]
            if (key := digest(inputs)) not in seen:
                seen.add(key)
                trials.append(_trial(contract, subject, reference, case, own, inputs))
    return trials


def answer(reference: ReferenceSession, subject: Subject, inputs: Sequence[Value], *, exact: bool) -> Reference:
    """Return the golden's answer on `inputs`; `exact`: in float64 too."""
    ask: Callable[..., RunResult] = reference.golden
    native = ask(inputs, function=subject.golden_function, file=subject.golden)
    wide = ask(inputs, function=subject.golden_function, file=subject.golden, float64=True) if exact else None
    return Reference(native, wide)


def _trial(
    contract: Contract,
    subject: Subject,
    reference: ReferenceSession,
    case: Mapping[str, Any],
    seed: int,
    inputs: Sequence[Value],
) -> Trial:
    expectation = Expectation(
        names=contract.leaf_names(subject.phase),
        input_names=contract.input_names,
        policy=contract.policy_for(case),
        precision=checks_precision(case),
    )
    exact = expectation.precision and expectation.policy.needs_twins
    found = answer(reference, subject, inputs, exact=exact)
    if problem := found.problem():
        raise ContractError(f"the golden gave no reference: {problem}", file=subject.golden, where=f"case {case['id']}")
    return Trial(str(case["id"]), seed, inputs, found, expectation)
