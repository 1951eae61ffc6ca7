"""The clock of a search: runs a text on cases, takes the time that its place gives, and compares the numbers."""

from __future__ import annotations

import contextlib
import itertools
import math
import secrets
import shutil
import statistics
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pypto_op.backends.base import Limits
from pypto_op.backends.registry import get_backend
from pypto_op.backends.sim import SimBackend
from pypto_op.errors import InfraError
from pypto_op.judge.answers.plan import plan_without_backends
from pypto_op.judge.answers.references import ReferenceLoss, References
from pypto_op.judge.cases import fresh
from pypto_op.judge.cases.contract import Contract
from pypto_op.judge.cases.inputs import checks_precision, tensors_in
from pypto_op.judge.cases.subject import Subject
from pypto_op.judge.findings.redaction import Redactor
from pypto_op.locks import Lock
from pypto_op.modes import REGISTRY
from pypto_op.mutation.cases import earlier
from pypto_op.mutation.hunt import Fate, Hunt, Range, ScratchWorkspace
from pypto_op.mutation.mutants import Mutant
from pypto_op.mutation.trials import Order, Trial, make_trials
from pypto_op.perf.bound import Work
from pypto_op.perf.measuring import label_of
from pypto_op.tuning import shapes
from pypto_op.vocabulary import Mode, Status

_SEED = 20_260_131
_SCRATCH, _ALIVE = "tuning-", "alive"
_LEAST_SECONDS, _LONGER = 20.0, 6.0
_FILLING = "pattern"
"""With it a call is made no more often than its outputs need: other questions are the judge's, who asks them at the end."""


def _sweep(room: Path) -> None:
    """Remove what clocks left that were killed: the kernel has released their locks."""
    for left in room.glob(f"{_SCRATCH}*/{_ALIVE}"):
        with contextlib.suppress(InfraError), Lock(left, seconds=0):
            shutil.rmtree(left.parent, ignore_errors=True)


@dataclass
class Timed:
    """What a text did on some cases."""

    times: dict[str, float] = field(default_factory=dict)  # case -> microseconds; only of cases that ran and were right
    # case -> the figures of its place, such as utilisation and tasks
    figures: dict[str, Mapping[str, float]] = field(default_factory=dict)
    fault: str = ""  # the first thing that was wrong, in words; "" for nothing
    failed: str = ""  # the case that was wrong; "" for none
    ran: bool = True  # numbers came back, so that what is wrong is the numbers

    def join(self, other: Timed) -> None:
        """Take over what another run of the same text found."""
        self.times |= other.times
        self.figures |= other.figures
        self.fault, self.failed, self.ran = other.fault, other.failed, other.ran


def ratio(times: Mapping[str, float], base: Mapping[str, float]) -> float:
    """Return the geometric mean of times over the baseline's, of the cases that both have; inf without any."""
    logs = [math.log(time / base[case]) for case, time in times.items() if base.get(case) and time > 0]
    return math.exp(statistics.fmean(logs)) if logs else math.inf


class Clock:
    """Times texts of one operator's kernel; a context manager that leaves nothing behind.

    Args:
        subject: its integrated implementation.
        limits: what a candidate may use.
        traces: a folder that keeps what the cost model wrote of each call; None: nothing is kept.
        few: prepare the few cases of `check` too.

    Raises:
        ContractError: inputs or golden of a case cannot be had.
    """

    def __init__(
        self, contract: Contract, subject: Subject, mode: Mode, limits: Limits, *, traces: Path | None = None, few: bool = True
    ) -> None:
        self.contract, self.mode = contract, mode
        self.cases = shapes.p0_cases(contract)
        self._stack = ExitStack()
        _sweep(contract.workspace.debug_dir)
        scratch = contract.workspace.debug_dir / f"{_SCRATCH}{secrets.token_hex(4)}"
        scratch.mkdir(parents=True)
        self._stack.callback(shutil.rmtree, scratch, ignore_errors=True)
        self._stack.enter_context(Lock(scratch / _ALIVE))
        own = ScratchWorkspace.of(contract.workspace, scratch)
        self._subject = replace(subject, workspace=own)
        self._redactor = Redactor(subject.golden, subject.impl)
        backend: Any = get_backend(mode) if traces is None else SimBackend(traces=traces)
        self._range = Range(subject, own, backend, limits)
        self._numbers = itertools.count()
        self._timing = self._trials(self.cases)
        self._few = self._trials(shapes.few_cases(contract)) if few else []

    def __enter__(self) -> Clock:
        return self

    def __exit__(self, *raised: object) -> None:
        self._stack.close()

    def _every_trial(self, cases: Sequence[Mapping[str, Any]]) -> list[Trial]:
        """Return the trials of cases, with their inputs and the golden's answers."""
        plan = plan_without_backends(self.contract, self._subject, cases, _SEED)
        references = References(plan, ReferenceLoss())
        self._stack.callback(references.close)  # a trial asks for further answers of the golden where an output is not its own
        return make_trials(plan, references)

    def _trials(self, cases: Sequence[Mapping[str, Any]]) -> list[Trial]:
        """Return one trial per case."""
        return list({trial.case: trial for trial in reversed(self._every_trial(cases))}.values())[::-1]

    def whole_suite(self) -> Order:
        """Return every trial of the suite, and of the shapes that a verdict draws; for `hunt`."""
        cases = [case for case in self.contract.cases if checks_precision(case)]
        order = Order(self._every_trial([*cases, *fresh.draw(self.contract, _SEED).cases]))
        order.remember(earlier(self.contract.workspace))
        return order

    def hunt(self, mutant: Mutant, order: Order, trials: int | None = None) -> Fate:
        """Return what the trials of the suite make of a mutant, or so many of them, those that promise most."""
        asked = itertools.count()
        stopped = (lambda: False) if trials is None else (lambda: next(asked) >= trials)
        with self._range.open(f"m{next(self._numbers)}", mutant.source) as session:
            return Hunt(session, order, self._redactor, stopped, mutant.operator).run().fate

    def labels(self) -> dict[str, str]:
        """Return case -> shape and dtype in words, the largest first."""
        return {str(case["id"]): label_of(case) for case in self.cases}

    @property
    def timing(self) -> Sequence[Trial]:
        """The trials of the P0 shapes, the largest first."""
        return self._timing

    def work(self, trial: Trial | None = None) -> Work:
        """Return what a P0 shape, the largest where none is named, has to move; its arithmetic is not counted."""
        trial = trial or self._timing[0]
        tensors = [*tensors_in(trial.inputs), *trial.reference.native.outputs]
        return Work(bytes=sum(tensor.numel() * tensor.element_size() for tensor in tensors))

    def more(self, cases: Sequence[Mapping[str, Any]]) -> list[Trial]:
        """Return trials of further cases, for `time`."""
        return self._trials(cases)

    def time(
        self,
        source: str,
        *,
        base: Mapping[str, float] | None = None,
        slower: float = math.inf,
        trials: Sequence[Trial] | None = None,
    ) -> Timed:
        """Time a text on the P0 shapes, the largest first, and stop at the first wrong number.

        Args:
            base: times to compare with, by case.
            slower: go on after a case only as long as its time is at most so many times the one to compare with.
            trials: in the place of those of the P0 shapes.
        """
        found = Timed()
        session = self._range.open(f"c{next(self._numbers)}", source, cost_model=True)
        with session:
            for trial in self._timing if trials is None else trials:
                run = session.run(trial.case, trial.inputs, guess=True, filling=_FILLING)
                verdict = trial.judge(run, self._redactor)
                if verdict.status is not Status.PASS:
                    found.fault, found.failed = verdict.summary or str(verdict.status), trial.case
                    found.ran = verdict.status is Status.FAIL
                    break
                figures = dict(run.cost or {})
                took = figures.get(REGISTRY[self.mode].timing.figure)
                if not took:
                    found.fault, found.failed, found.ran = "gave no time", trial.case, False
                    break
                found.times[trial.case], found.figures[trial.case] = float(took), figures
                if base is not None and took > slower * base.get(trial.case, math.inf):
                    break
        return found

    @property
    def limits(self) -> Limits:
        """What a candidate may use."""
        return self._range.limits

    def bear(self, seconds: float) -> None:
        """Give each further run so much longer than the kernel's own took: one that hangs shall not cost minutes.

        Args:
            seconds: that the kernel took for all its P0 shapes, the start of its process included.
        """
        limits = replace(self._range.limits, case_seconds=max(_LEAST_SECONDS, _LONGER * seconds))
        self._range = replace(self._range, limits=limits)

    def check(self, source: str) -> Timed:
        """Run a text on the few cases of the suite, without a clock."""
        found = Timed()
        with self._range.open(f"c{next(self._numbers)}", source) as session:
            for trial in self._few:
                verdict = trial.judge(session.run(trial.case, trial.inputs, guess=True, filling=_FILLING), self._redactor)
                if verdict.status is not Status.PASS:
                    found.fault, found.failed = verdict.summary or str(verdict.status), trial.case
                    found.ran = verdict.status is Status.FAIL
                    break
        return found
