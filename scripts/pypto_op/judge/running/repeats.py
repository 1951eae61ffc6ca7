"""Further calls: does a wrapper that answered once answer the next time too, and leave its earlier results alone?

At the end of each lane, on a small case of it whose answer depends on its inputs: the first inputs again; a few elements
changed in the same tensors; the values of the second seed in them; one scalar changed alone. Then a new process gets the
changed scalar first, since what a wrapper keeps of its first call may be wrong for lesser, or for greater values alone.
Then, on the smallest case that has such, huge values and NaN where the golden reads nothing (`unread`). Each is judged as a
trial is.
Where somebody keeps the memory of results, more calls follow, since a ring of buffers shows when it is round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from pypto_op.backends.base import RunResult, Session
from pypto_op.judge.answers.references import References
from pypto_op.judge.answers.verdict import failed_for
from pypto_op.judge.cases.inputs import checks_precision, tensors_in
from pypto_op.judge.findings.reasons import PROCESS_LOSSES, Reason
from pypto_op.judge.findings.records import CaseRecord, Further, TrialVerdict
from pypto_op.judge.running.changes import Changes, Scalar, finite, is_scalar
from pypto_op.judge.running.staleness import Answered, agree
from pypto_op.judge.running.unread import plantings
from pypto_op.vocabulary import Mode, Status

if TYPE_CHECKING:
    from pypto_op.backends.base import Value
    from pypto_op.judge.answers.plan import Plan

MOST_ROUND = 16
"""Calls at most that wait for kept results to be handed out again."""

_MOST_OFFERS = 3
"""Cases of a lane that are kept for the choice, smallest first: on the smallest, small changes may not show."""

_MOST_VALUES = 3
"""Values of one scalar that a wrapper may refuse before it is left alone."""

_NUMBERS = frozenset({Reason.UNWRITTEN, Reason.NON_FINITE, Reason.MISMATCH})
_REFUSALS = PROCESS_LOSSES | {Reason.EXCEPTION}

Judge = Callable[[Mode, RunResult, Answered], TrialVerdict]


@dataclass
class _Offer:
    """A case that further calls may be made on."""

    record: CaseRecord
    trials: Sequence[Answered]
    size: int


@dataclass
class Repeats:
    """The further calls of one lane."""

    plan: Plan  # what is judged
    references: References  # answer for changed inputs
    sessions: Mapping[Mode, Session]  # of the lane, by mode
    judge: Judge  # gives the verdict on a run
    handed: Sequence[int]  # positions, among the primary inputs, of what the wrapper is called with
    renewed: Callable[[Mode], Session | None]  # puts a new process in a session's place; None where it does not start
    guesses_first: bool = False  # a value that the judge has guessed comes first in a new process, too: one lane is enough
    _offers: list[_Offer] = field(default_factory=list)
    _known: dict[int, list[Value]] = field(default_factory=dict)

    def offer(self, record: CaseRecord, trials: Sequence[Answered]) -> Iterator[CaseRecord]:
        """Take a case that was judged, and yield the record that needs no further call: its own, or of a larger case.

        Args:
            trials: its inputs and answers, seed by seed.
        """
        for trial in trials:
            for place, value in enumerate(trial.inputs):
                if is_scalar(value) and value not in self._known.setdefault(place, []):
                    self._known[place].append(value)
        if not self._is_fit(record, trials):
            yield record
            return
        self._offers.append(_Offer(record, trials, sum(tensor.numel() for tensor in tensors_in(trials[0].inputs))))
        self._offers.sort(key=lambda offer: offer.size)
        yield from (offer.record for offer in self._offers[_MOST_OFFERS:])
        del self._offers[_MOST_OFFERS:]

    def finish(self) -> Iterator[CaseRecord]:
        """Make the further calls, and yield the cases that were kept for them."""
        if self._offers:
            record, trials, changes, changed = self._chosen()
            for calls in self._calls(record, trials[0], changes):
                calls.note(calls.fault(changed, trials[1]))
            self._plant()
        yield from (offer.record for offer in self._offers)

    def _plant(self) -> None:
        """Call with what no kernel may read, on the smallest case that has room for it."""
        for offer in self._offers:
            base = offer.trials[0]
            ends = partial(self._whole_ends, base)
            planted = list(plantings(base, self.references, partial(self._check, base), ends, nan=self.plan.nan_is_legal))
            for calls in self._calls(offer.record, base, None) if planted else ():
                calls.note(calls.planted(planted))
            if planted:
                return

    def _check(self, base: Answered, inputs: Sequence[Value]) -> None:
        self.plan.check_inputs(base.case, list(zip(self.plan.input_names, inputs, strict=True)))

    def _whole_ends(self, base: Answered, place: int) -> tuple[int | None, int | None] | None:
        return self.plan.whole_ends(base.case, self.plan.input_names[place])

    def _calls(self, record: CaseRecord, base: Answered, changes: Changes | None) -> Iterator[_Calls]:
        """Yield, for each mode that has passed so far, what makes further calls in it."""
        for mode, session in [*self.sessions.items()]:
            if record.modes[mode].status is Status.PASS:
                yield _Calls(self, mode, session, record, base, changes)

    def _chosen(self) -> tuple[CaseRecord, Sequence[Answered], Changes, Answered | None]:
        """Return the case on which most of the changes show, the smallest of several, and a change of a few elements."""
        found, most = None, -1
        for offer in self._offers:
            base = offer.trials[0]
            changes = Changes(base, self.references, self.plan.extra_seed, partial(self._check, base))
            changed = changes.few_elements()
            scalars = [place for place in self.handed if is_scalar(base.inputs[place])]
            shown = [changed, *(next(changes.scalar(place, self.known(place)), None) for place in scalars)]
            count = sum(one is not None for one in shown)
            if count > most:
                found, most = (offer.record, offer.trials, changes, changed), count
            if count == len(shown):
                break
        assert found is not None
        return found

    def _is_fit(self, record: CaseRecord, trials: Sequence[Answered]) -> bool:
        """Whether a wrong call would show on this case: its answers are finite and differ from seed to seed."""
        if not self.plan.further or not checks_precision(record.case) or len(trials) < 2 or record.status is not Status.PASS:
            return False
        if any(len(trial.inputs) != len(self.plan.input_names) for trial in trials):
            return False
        one, two = (trial.reference.native for trial in trials[:2])
        return finite(one) and not agree(two.outputs, one.outputs, trials[0].expectation)

    def known(self, place: int) -> Sequence[Value]:
        """Return the values of a scalar input that cases of the lane have."""
        return self._known.get(place, ())


class _Calls:
    """The further calls of one mode."""

    def __init__(
        self, repeats: Repeats, mode: Mode, session: Session, record: CaseRecord, base: Answered, changes: Changes | None
    ) -> None:
        self._repeats, self._mode, self._session, self._base, self._changes = repeats, mode, session, base, changes
        self._record = record
        self._last: RunResult | None = None
        self._based = False
        self._passed: list[tuple[str, Scalar]] = []  # of each scalar the value that was called with last, and rightly
        self.told = record.further.setdefault(mode, Further())

    def note(self, found: TrialVerdict | None) -> None:
        """Add what was found wrong to the record of the case."""
        if found is not None:
            self._record.modes[self._mode].trials.append(found)

    def planted(self, planted: Sequence[tuple[str, Answered]]) -> TrialVerdict | None:
        """Call with what was planted where the golden reads nothing; return the first verdict that is no PASS."""
        for what, asked in planted:
            verdict = self._call(asked, again=True)
            self.told.planted.append(what)
            if (
                found := _told(verdict, Reason.WRONG_WHEN_CHANGED, f"called with {what} where the golden reads nothing")
            ) is not None:
                return found
        return None

    def fault(self, changed: Answered | None, other: Answered) -> TrialVerdict | None:
        """Make the calls; return the first verdict that is no PASS, None when all are.

        Args:
            changed: the inputs with a few elements changed.
            other: those of the second seed.
        """
        if (found := self._same("called again with the same inputs")) is not None:
            return found
        if changed is None:
            self.told.not_shown.append("a change of a few elements moves the answer by less than the tolerance")
        else:
            verdict = self._call(changed, again=True)
            if (found := _told(verdict, Reason.WRONG_WHEN_CHANGED, "called with a few elements changed")) is not None:
                return found
        if (found := self._repeated(other, "called again with the inputs of the second seed")) is not None:
            return found
        for place in self._repeats.handed:
            if is_scalar(self._base.inputs[place]) and (found := self._scalar(place)) is not None:
                return found
        return self._round() or self._changed_first()

    def _same(self, what: str) -> TrialVerdict | None:
        """Call with the first inputs, in tensors of their own; then with each of them a part of a larger tensor."""
        if (found := _told(self._call(self._base, again=False), Reason.UNSTABLE, what)) is not None:
            return found
        verdict = self._call(self._base, again=False, inside=True)
        return _told(verdict, Reason.UNSTABLE, f"{what}, which are parts of larger tensors")

    def _repeated(self, trial: Answered, what: str) -> TrialVerdict | None:
        """Call with the inputs of a trial that passed, in the tensors of the call before."""
        return _told(self._call(trial, again=True), Reason.UNSTABLE, what)

    def _scalar(self, place: int) -> TrialVerdict | None:
        """Call with one scalar changed, after a call with the old one in the same process.

        A float is changed to a drawn value too, since a kernel may know those of the suite by heart.
        """
        name = self._repeats.plan.input_names[place]
        assert self._changes is not None
        options = self._changes.scalar(place, self._repeats.known(place))
        for _, option in zip(range(_MOST_VALUES), options, strict=False):
            verdict = self._after_base(option)
            if verdict.status is not Status.PASS and not _is_refusal(verdict, option):
                value = f" to {_told_number(option.value)}" if option.guessed else ""  # a case's own is not for a kernel's author
                return _told(verdict, Reason.WRONG_WHEN_CHANGED, f"called with {name} alone changed{value}")
            if verdict.status is Status.PASS and name not in self.told.varied:
                self.told.varied.append(name)
            if verdict.status is Status.PASS and (option.guessed or not isinstance(option.value, float)):
                self._passed.append((name, option))
                return None
        if name not in self.told.varied:
            self.told.not_shown.append(
                f"no other value of {name} was found that moves the answer and that SPEC.md, golden and wrapper take"
            )
        return None

    def _changed_first(self) -> TrialVerdict | None:
        """Call with each scalar's other value, first of all in a new process, and then with the old one."""
        for name, option in self._passed:
            if option.guessed and not self._repeats.guesses_first:
                continue
            session = self._repeats.renewed(self._mode)
            if session is None:
                return None  # the lane tells why
            self._session, self._last = session, None
            first = self._call(option.answered, again=False, guess=option.guessed)
            if (found := _told(first, Reason.WRONG_WHEN_CHANGED, f"called first of all with {name} alone changed")) is not None:
                return found
            then = self._call(self._base, again=False)
            if (found := _told(then, Reason.WRONG_WHEN_CHANGED, f"called after a first call with {name} changed")) is not None:
                return found
        return None

    def _after_base(self, option: Scalar) -> TrialVerdict:
        verdict = self._call(option.answered, again=True, guess=option.guessed, scalar=True) if self._based else None
        if verdict is None or not self._based:
            first = self._call(self._base, again=False)
            if first.status is not Status.PASS:
                return first
            verdict = self._call(option.answered, again=True, guess=option.guessed, scalar=True)
        return verdict

    def _round(self) -> TrialVerdict | None:
        """Call on while somebody keeps results, to see whether they are handed out again."""
        for _ in range(MOST_ROUND):
            if self._last is None or not self._last.results_kept:
                return None
            if (found := self._repeated(self._base, "called again and again with the same inputs")) is not None:
                return found
        return None

    def _call(
        self, asked: Answered, *, again: bool, guess: bool = False, inside: bool = False, scalar: bool = False
    ) -> TrialVerdict:
        handed = [asked.inputs[place] for place in self._repeats.handed]
        known = not again or scalar  # a device would build no kernel
        run = self._session.run(str(asked.case["id"]), handed, again=again, guess=guess, inside=inside, rehearsed=known)
        followed = self._last is not None and self._last.call > 0 and run.call == self._last.call + 1
        self._based = asked is self._base or (self._based and followed)
        self._last = run
        self.told.calls += 1
        return self._repeats.judge(self._mode, run, asked)


def _told(verdict: TrialVerdict, reason: Reason, what: str) -> TrialVerdict | None:
    """Return None for a PASS; else the verdict with what was done, and with `reason` where the numbers are wrong."""
    if verdict.status is Status.PASS:
        return None
    if verdict.reasons[0] in _NUMBERS:
        verdict = failed_for(reason, verdict, what)
    else:
        verdict = replace(verdict, summary=f"{what}: {verdict.summary}")
    return replace(verdict, near_miss=False)


def _told_number(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else repr(value)


def _is_refusal(verdict: TrialVerdict, option: Scalar) -> bool:
    """Whether a wrapper may have no use for a value that the judge has guessed."""
    reason = verdict.reasons[0]
    return reason in _REFUSALS or (option.may_be_unfit and reason is not Reason.STALE_RESULT)
