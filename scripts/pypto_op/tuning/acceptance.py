"""Whether a survivor may take the kernel's place: the linter, every P0 shape, the whole suite, and the mutation score."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pypto_op.judge.cases.inputs import FRESH
from pypto_op.judge.cases.request import Request
from pypto_op.judge.findings.records import CaseRecord
from pypto_op.judge.verify import verify_operator
from pypto_op.mutation.hunt import Fate
from pypto_op.mutation.mutants import Mutant, in_turns, make_mutants
from pypto_op.mutation.operators.registry import select
from pypto_op.mutation.program import Program
from pypto_op.mutation.trials import Order
from pypto_op.perf.measuring import label_of
from pypto_op.tuning import shapes
from pypto_op.tuning.asking import GAIN
from pypto_op.tuning.clock import Clock
from pypto_op.vocabulary import LintEvent, Status
from pypto_op.workspace import OpWorkspace

_SEED = 20_260_131
_TUNING_STAGE = 7
_TRIALS = 6
"""A fault that lives so long in the kernel is not asked about in the candidate: what shows a fall is one that dies early."""


@dataclass
class Verdict:
    """What became of a survivor."""

    reason: str = ""  # why it is refused; "" for an accepted one
    labels: dict[str, str] = field(default_factory=dict)  # P0 case, in every dtype of the suite -> its shape and dtype in words
    before: dict[str, float] = field(default_factory=dict)  # P0 case -> the kernel's microseconds
    after: dict[str, float] = field(default_factory=dict)  # the candidate's
    # shape and dtype of an ordinary case of the suite, of another shape -> (the kernel's microseconds, the accepted candidate's):
    # the search did not ask about them
    others: dict[str, tuple[float, float]] = field(default_factory=dict)
    noise: float = 0.0  # the spread of the kernel's times on equal inputs, as a share
    cases: int = 0  # how many cases of the suite it passed
    mutants: int = 0  # how many faults, each of which the suite sees in the kernel, were planted into the candidate too
    killed: tuple[int, int] = (0, 0)  # (of the kernel's, of the candidate's) how many the suite kills


class Gatekeeper:
    """Decides about survivors of one kernel.

    Args:
        mutants: how many mutants the mutation score is compared on; 0: none.
        jobs: processes at once.
        late: says that the time is over.
    """

    def __init__(
        self, ws: OpWorkspace, clock: Clock, source: str, *, mutants: int, jobs: int, late: Callable[[], bool] = lambda: False
    ) -> None:
        self._late = late
        self._ws, self._clock, self._source, self._count, self._jobs = ws, clock, source, mutants, jobs
        cases = shapes.p0_cases(clock.contract, every_dtype=True)
        self._labels = {str(case["id"]): label_of(case) for case in cases}
        self._trials = clock.more(cases)
        self._before: dict[str, float] = {}
        self._noise = 0.0
        self._order: Order | None = None
        self._fates: dict[str, Fate] = {}

    def noise(self) -> float:
        """Return the spread of the kernel's own times in two runs on equal inputs, as a share of the time."""
        if not self._before:
            first, second = (self._clock.time(self._source, trials=self._trials).times for _ in range(2))
            self._before = first
            self._noise = max((abs(second[case] - took) / took for case, took in first.items() if case in second), default=0.0)
        return self._noise

    def judge(self, text: str, folder: Path) -> Verdict:
        """Return whether a text may take the kernel's place.

        Args:
            folder: where its file and its report go.

        Raises:
            OutOfTime: the time was over before it was known.
        """
        self._in_time()
        verdict = Verdict(labels=dict(self._labels), noise=self.noise(), before=dict(self._before))
        verdict.reason = self._lint(text) or self._times(text, verdict) or self._suite(text, folder, verdict)
        if not verdict.reason and self._count:
            verdict.reason = self._mutation(text, verdict)
        if not verdict.reason:
            verdict.others = self._others(text)
        return verdict

    def _others(self, text: str) -> dict[str, tuple[float, float]]:
        """Time kernel and candidate on the ordinary cases of L2 and L4 that have no P0 shape: nothing is decided by that."""
        cases = {str(case["id"]): case for case in shapes.other_cases(self._clock.contract)}
        trials = self._clock.more(list(cases.values()))
        before, after = (self._clock.time(one, trials=trials).times for one in (self._source, text))
        return {label_of(cases[case]): (took, after[case]) for case, took in before.items() if case in after}

    def _lint(self, text: str) -> str:
        from pypto_op_lint.api import lint_path

        def blocking(source: str) -> dict[str, int]:
            found: dict[str, int] = defaultdict(int)
            for finding in lint_path(self._ws.impl, text=source, event=LintEvent.ON_WRITE, stage=_TUNING_STAGE).blocking:
                found[f"{finding.rule_id}: {finding.message}"] += 1
            return found

        before = {text.split(":")[0] for text in blocking(self._source)}
        new = [text for text in blocking(text) if text.split(":")[0] not in before]
        return f"the linter refuses it, {new[0]}" if new else ""

    def _suite(self, text: str, folder: Path, verdict: Verdict) -> str:
        """Let the judge verify the candidate, as it would the kernel: every case, fresh seeds and drawn shapes."""
        folder.mkdir(parents=True, exist_ok=True)
        impl = folder / self._ws.impl.name
        impl.write_text(text, encoding="utf-8")
        modes, to = (self._clock.mode,), folder / "report.json"
        try:
            wanted = Request(modes, impl, report=to, jobs=self._jobs)
            report = verify_operator(self._ws, wanted, progress=self._stop_early)
        except OutOfTime:
            to.unlink(missing_ok=True)
            raise
        except _WrongCase as wrong:
            to.unlink(missing_ok=True)  # it says no more than that the judge was stopped
            return f"the suite refuses it: {wrong}"[:600]
        verdict.cases = int(report["cases_passed"])
        if report["status"] == Status.PASS:
            return ""
        failure = report.get("first_failure") or {}
        told = failure.get("summary") or (report.get("error") or {}).get("message") or ""
        return f"the suite refuses it: {report['status']}, {failure.get('case_id') or ''} {told}".strip()[:600]

    def _stop_early(self, record: CaseRecord, total: int) -> None:
        self._in_time()
        _stop_at_a_wrong_case(record, total)

    def _in_time(self) -> None:
        """Raise `OutOfTime` where the time is over."""
        if self._late():
            raise OutOfTime

    def _times(self, text: str, verdict: Verdict) -> str:
        """Time every P0 shape in every dtype: none may lose, and all together must gain more than the noise."""
        from pypto_op.tuning.clock import ratio

        timed = self._clock.time(text, trials=self._trials)
        if timed.fault:
            return f"{timed.failed}: {timed.fault}"[:600]
        verdict.after = dict(timed.times)
        allowed = 1.0 + self._noise
        for case, took in timed.times.items():
            if took > self._before[case] * allowed + 1e-9:
                return f"{case} loses: {self._before[case]:.2f} -> {took:.2f} us"
        gained = 1.0 - ratio(timed.times, self._before)
        least = max(self._noise, GAIN)
        return "" if gained >= least else f"over every dtype it gains {100 * gained:.1f} %, less than {100 * least:.1f} %"

    def _mutation(self, text: str, verdict: Verdict) -> str:
        """Plant the same faults into both: of those that the suite kills in the kernel, it must kill all in the candidate."""
        self._order = self._order or self._clock.whole_suite()
        killed = [0, 0]
        for before, after in _pairs(self._source, text, self._clock.contract.workspace.wrapper_name()):
            if verdict.mutants == self._count:
                break
            self._in_time()
            if self._fate(before, _TRIALS) is not Fate.KILLED:
                continue
            fate = self._fate(after)
            if fate is Fate.INVALID:
                continue  # pypto refuses it there: no suite is asked
            verdict.mutants += 1
            verdict.killed = (killed[0] + 1, killed[1] + (fate is Fate.KILLED))
            killed = list(verdict.killed)
            if fate is not Fate.KILLED:
                lost = " ".join(before.diff.split())[:300]
                return f"the mutation score falls: a fault that the suite sees in the kernel, it misses in this: {lost}"
        return ""

    def _fate(self, mutant: Mutant, trials: int | None = None) -> Fate:
        """Return what the suite, or so many of its trials, make of a mutant."""
        if mutant.source not in self._fates:
            assert self._order is not None
            self._fates[mutant.source] = self._clock.hunt(mutant, self._order, trials)
        return self._fates[mutant.source]


class OutOfTime(Exception):
    """The budget was spent before a survivor was judged: nothing is known of it."""


class _WrongCase(Exception):
    """A case of the suite that the candidate gets wrong: the others need not be asked."""


def _stop_at_a_wrong_case(record: CaseRecord, total: int) -> None:
    """Raise `_WrongCase` for what no later step of the judge would excuse: the suite's own case on its own seed."""
    if record.case.get(FRESH) or record.lack_of_memory:
        return
    for mode, cell in record.modes.items():
        if cell.trials and cell.trials[0].status is Status.FAIL and not cell.workspace_fault:
            raise _WrongCase(f"{Status.FAIL}, {record.id} {mode}: {cell.trials[0].summary}")


def _pairs(before: str, after: str, wrapper: str) -> list[tuple[Mutant, Mutant]]:
    """Return mutants of both texts with the same fault in the same line, a fair sample first."""
    operators = select(None)
    made = [make_mutants(Program(text, wrapper), operators) for text in (before, after)]
    waiting: dict[tuple[str, str], list[Mutant]] = defaultdict(list)
    for mutant in made[1]:
        waiting[mutant.operator, mutant.diff].append(mutant)
    partner: Mapping[str, Mutant] = {
        mutant.id: waiting[mutant.operator, mutant.diff].pop(0) for mutant in made[0] if waiting[mutant.operator, mutant.diff]
    }
    return [(mutant, partner[mutant.id]) for mutant in in_turns(made[0], _SEED) if mutant.id in partner]
