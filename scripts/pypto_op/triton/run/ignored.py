"""Finds kernels that ignore a number: forward (`whole`) or the constructor (`constructor`) gets another one.

A kernel whose answer is then still the right one for the task's own number ignores it, and is wrong. Of whole numbers of the
constructor that is only said.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pypto_op.triton.run.inputs import constructor, whole
from pypto_op.triton.run.judging.judgement import Judgement
from pypto_op.triton.run.processes.sessions import Answered, CandidateSession, TaskSession, Told
from pypto_op.triton.run.verification import ReferenceFailed, asked, judged

if TYPE_CHECKING:
    from pypto_op.triton.run.case import Case
    from pypto_op.triton.run.verification import Verification

Opened = Callable[[Callable[["Case"], bool]], Iterator[tuple["Case", int]]]
_Asked = tuple[dict[str, Any], dict[str, Any]]


class Ignored:
    """Those calls of one verification; `opened` yields cases that are right so far and wanted, with the seed of a pass."""

    def __init__(self, run: Verification, task: TaskSession, candidate: CandidateSession, opened: Opened) -> None:
        self._run, self._task, self._candidate, self._opened = run, task, candidate, opened
        self._answered: Answered | None = None  # what the last call with another number returned

    def of_forward(self) -> None:
        """Judge calls with other whole numbers among the arguments, for those that are the same in each case."""
        numbers = whole.always(case.whole for case in self._run.cases) if self._run.cases else []
        for case, seed in itertools.islice(self._opened(lambda case: bool(numbers)), 1):
            for number in numbers:
                with contextlib.suppress(ReferenceFailed):  # where it really fails, a main pass says so
                    self._argument(case, number, seed)

    def of_constructor(self) -> None:
        """Judge calls of models that were made with other numbers."""
        for case, seed in itertools.islice(self._opened(lambda case: bool(case.given)), 1):
            fractions = [number for number in case.given if isinstance(number[1], float)]
            changes = constructor.together(fractions)
            for move in (constructor.MOVE, constructor.FAR) if case.bounded else (constructor.MOVE,):
                at_once = len(fractions) > 1 and self._is_right(case, move, changes, seed)
                wanted = case.given if move == constructor.MOVE else fractions
                for number in [number for number in wanted if not (at_once and number in fractions)]:
                    with contextlib.suppress(ReferenceFailed):
                        if case.judgement.ok:
                            self._given(case, move, number, seed)

    def _is_right(self, case: Case, move: str, changes: Mapping[str, Sequence[float]], seed: int) -> bool:
        """Whether the implementation is right with such numbers; not where the reference does not take them."""
        with contextlib.suppress(ReferenceFailed, Told):
            given, reference = self._asked(case, seed, move, changes)
            return not reference.get("same") and self._right(given, reference, self._candidate.run(given, seed, later=True), seed)
        return False

    def _given(self, case: Case, move: str, number: constructor.Number, seed: int) -> None:
        """Judge a call with another number; far away, where rounding is magnified, only one that is ignored is spoken of."""
        place, value, _ = number
        ways = [(move, other, {place: [other]}) for other in constructor.others(value)]
        found = self._wrong(case, ways, seed, own=constructor.INPUTS[move])
        if found is None:
            return
        other, ignored, begin = found
        answered = self._answered
        for another in [] if ignored else constructor.alike(case.given, number):
            with contextlib.suppress(ReferenceFailed):
                if answered is not None and self._right(*self._asked(case, seed, move, {another[0]: [other]}), answered, seed):
                    self._say(case, constructor.taken_for(number, another), begin, fails=True)
                    return
        if ignored or move == constructor.MOVE:
            self._say(case, constructor.told(number, other, ignored=ignored), begin, fails=ignored and isinstance(value, float))

    def _argument(self, case: Case, number: whole.Number, seed: int) -> None:
        path, value, _, may_be_fixed = number
        ways = [(whole.MOVE, other, {path: [other]}) for other in whole.others(value)]
        found = self._wrong(case, ways, seed)
        if found is not None:
            other, ignored, begin = found
            self._say(case, whole.told(number, other, ignored=ignored), begin, fails=ignored and not may_be_fixed)

    def _say(self, case: Case, words: str, begin: float, *, fails: bool) -> None:
        if fails:
            self._run.keep(case, 1, Judgement("PrecisionError", words), begin)
        else:
            case.said.append(words)

    def _wrong(
        self, case: Case, ways: Sequence[tuple[str, float, Mapping[str, Sequence[float]]]], seed: int, own: str = ""
    ) -> tuple[float, bool, float] | None:
        """Return the number with which the implementation is wrong, whether it ignored it, and when the call began; or None.

        `own` is the move by which the task's own number gets the same inputs.
        """
        begin, self._answered = time.monotonic(), None
        tried = ((other, self._shown(case, seed, move, places)) for move, other, places in ways)
        other, shown = next((pair for pair in tried if pair[1] is not None), (0.0, None))
        if shown is None:
            return None
        try:
            answered = self._answered = self._candidate.run(shown[0], seed, later=True)
        except Told:
            return other, False, begin
        if self._right(*shown, answered, seed):
            return None
        return other, self._right(*self._asked(case, seed, own, {}), answered, seed), begin

    def _shown(self, case: Case, seed: int, move: str, places: Mapping[str, Sequence[float]]) -> _Asked | None:
        """Return a case with another number, where it has another answer; a constructor may not take the number."""
        try:
            found = self._asked(case, seed, move, places)
        except ReferenceFailed:
            if move in constructor.INPUTS:
                return None
            raise
        return None if found[1].get("same") else found

    def _asked(self, case: Case, seed: int, move: str, places: Mapping[str, Sequence[float]]) -> _Asked:
        self._run.tighten(self._task, self._candidate)
        return asked(self._task, case, seed, opens=True, move=move, places=places)

    def _right(self, given: dict[str, Any], reference: dict[str, Any], answered: Answered, seed: int) -> bool:
        return judged(self._run, self._task, given, reference, answered, seed).ok
