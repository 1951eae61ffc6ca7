"""Calls of an implementation on a GPU whose programs, and whose warps, run in other orders (`orders`).

Right numbers on a device do not show that programs may run in any order: a small grid runs at once. So each case that is right
runs again in each of these orders, in a process of its own. A kernel that races gives other numbers then.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pypto_op.backends.base import Limits, RunResult
from pypto_op.errors import PyptoOpError
from pypto_op.triton.run.inputs.packing import tensors_of
from pypto_op.triton.run.judging.judgement import Judgement, judge
from pypto_op.triton.run.processes.sessions import CandidateSession, TaskSession, Told
from pypto_op.triton.run.verification import ReferenceFailed, asked, judged
from pypto_op.triton.run.watching.orders import OF_WARPS, ORDERS, OWN

if TYPE_CHECKING:
    from pypto_op.triton.run.case import Case
    from pypto_op.triton.run.verification import Verification

_SECONDS = 20.0
"""What one call may take: programs that wait for each other wait for ever where they run one after another."""
_ALL_SECONDS = 30.0
"""After so long no further case begins; `caveats` names those left."""
_KEPT = 1 << 30
"""So many bytes of inputs and right outputs may be kept for calls that run beside other passes."""

_BY_CHANCE = (
    "calls before this one were right on inputs of this kind; here loads look past the first cache, and take longer: programs "
    "may share memory that they write, or it is read before it is written"
)


def _limits(run: Verification) -> Limits:
    limits = run.request.limits(run.started)
    return replace(limits, case_seconds=min(limits.case_seconds, _SECONDS))


_Answers = tuple[list[tuple[list[str], dict[str, Any]]], RunResult]


@dataclass(frozen=True)
class _Begun:
    """A case whose calls run beside other passes: what it is given, facts about the reference, and the answers to come."""

    given: dict[str, Any]
    reference: dict[str, Any]
    answers: Future[_Answers]


class Reordered:
    """Those calls of one verification; `session` is that of `Started.ordered`, and is closed with this."""

    def __init__(self, run: Verification, task: TaskSession, session: CandidateSession | None) -> None:
        self._run, self._task, self._session = run, task, session
        self._pool = ThreadPoolExecutor(1, "orders")
        self._begun: dict[int, _Begun] = {}
        self._kept = 0

    def close(self) -> None:
        """End its process; harmless when called twice."""
        if self._session is not None:
            self._session.close()
        self._pool.shutdown(cancel_futures=True)

    def begin(self, case: Case, given: dict[str, Any], reference: dict[str, Any], seed: int) -> None:
        """Begin the calls of a case beside its first one, where little has to be kept for them, and do not wait for them.

        A process compiles each kernel once more for these, which takes longer than the calls.
        """
        if self._session is None or self._kept > _KEPT:
            return
        self._session.limits = _limits(self._run)
        answers = self._pool.submit(self._session.in_orders, given, seed, [OWN, *ORDERS])
        self._begun[case.index] = _Begun(given, reference, answers)
        self._kept += sum(tensor.nbytes for tensor in tensors_of(list(given.values())))

    def _holds(self, case: Case) -> bool:
        """Whether the calls that were begun are right as they stand; ties and rounding are looked at in calls made again."""
        begun = self._begun.pop(case.index, None)
        if begun is None or self._run.policy is None:
            return False
        try:
            answers, run = begun.answers.result()
        except (Told, PyptoOpError):
            return False
        run, policy = _of_numbers_alone(run), self._run.policy

        def numbers(want: dict[str, Any], got: dict[str, Any]) -> Judgement:
            return judge(want, begun.reference, got, run, {}, policy)

        return all(self._run.desk.of_case(begun.given, answer, numbers).ok for _, answer in answers)

    def everything(self, opened: Callable[[Callable[[Case], bool]], Iterator[tuple[Case, int]]]) -> None:
        """Judge one call of each case in each order; `opened` yields cases that are right so far, with the seed of a pass."""
        if self._session is None:
            return
        first = time.monotonic()
        for case, seed in opened(lambda case: not self._holds(case)):
            if time.monotonic() - first > _ALL_SECONDS:
                case.said.append("no other order of programs was judged: other cases took the time for that")
                continue
            self._run.tighten(self._task)
            try:
                found = asked(self._task, case, seed)
            except ReferenceFailed:
                return
            begin = time.monotonic()
            try:
                wrong = self._wrong(self._session, *found, seed)
            except Told as told:
                case.said.append(f"no other order of programs was judged: {told.error_type}")
                continue
            if wrong is not None:
                self._run.keep(case, 1, wrong, begin)

    def _wrong(self, session: CandidateSession, given: dict[str, Any], reference: dict[str, Any], seed: int) -> Judgement | None:
        """Return what is wrong in the first order that gives wrong numbers; None where none does."""
        self._run.tighten(self._task)
        session.limits = _limits(self._run)
        answers, run = session.in_orders(given, seed, [OWN, *ORDERS])
        run = _of_numbers_alone(run)
        for orders, answer in answers:
            found = judged(self._run, self._task, given, reference, (answer, run, {}), seed)
            if not found.ok:
                return told(orders[0], found)
        return None


def _of_numbers_alone(run: RunResult) -> RunResult:
    return replace(run, outputs_from_kernel=True, mutated_inputs=(), aliased_inputs=())  # other passes tell


def told(order: str, found: Judgement) -> Judgement:
    """Return the verdict on numbers that are wrong in one of `ORDERS`, or in one that nobody chose (`OWN`)."""
    if not order:  # wrong in an order that nobody chose
        return replace(found, message=f"{found.message}\n{_BY_CHANCE}")
    kind = "LaneRaceError" if order in OF_WARPS else "RaceError"
    return Judgement(kind, f"the answer is wrong where {ORDERS[order]}, and right otherwise\n{found.message}")
