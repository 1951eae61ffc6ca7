"""Runs the looks of a verification (`judging.looks`); the task draws inputs while the implementation runs on the last ones."""

from __future__ import annotations

import secrets
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import Any, TypeAlias

from pypto_op.triton.run.case import Case
from pypto_op.triton.run.judging import looks
from pypto_op.triton.run.judging.judgement import Judgement
from pypto_op.triton.run.judging.provenance import Provenance
from pypto_op.triton.run.processes.model import numbers_of
from pypto_op.triton.run.processes.sessions import CandidateSession, TaskSession, Told
from pypto_op.triton.run.verification import Verification

Drawn: TypeAlias = tuple[dict[str, Any], dict[str, Any]] | None
"""A case and facts about it, as `TaskSession.case` returns them."""


@dataclass(frozen=True)
class _Look:
    seed: int
    move: str
    cases: list[Case]


class Looks:
    """Further calls of the cases that are right, for what the host hands to launches alone.

    Args:
        run: the verification.
        task, candidate: its processes.

    Attributes:
        spent: seconds of processor time that the implementation took in all looks.
    """

    def __init__(self, run: Verification, task: TaskSession, candidate: CandidateSession) -> None:
        self._run, self._task, self._candidate = run, task, candidate
        self._beside = ThreadPoolExecutor(1, "looks")
        self._next: _Look | None = None  # whose first case is being drawn
        self._drawing: Future[Drawn] | None = None
        self.spent = 0.0

    def __enter__(self) -> Looks:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is None:
            self.settle()
        self._beside.shutdown(wait=False)  # after an error nobody waits: closing the task's session ends what still asks it

    def settle(self) -> None:
        """Give up what was drawn for a look that does not follow, so that the task is free."""
        drawing, self._next, self._drawing = self._drawing, None, None
        if drawing is not None:
            drawing.exception()

    def one(self, *, goes_on: bool) -> None:
        """Run one look; `goes_on`: another one may follow, so its first case is drawn meanwhile."""
        look, self._next = self._next or self._begun(), None
        self._run.calls.append(look.seed)
        for place, case in enumerate(look.cases):
            found = self._found()
            if found is None:
                return  # where the reference really fails, a pass says so
            if place + 1 < len(look.cases):
                self._draw(look, place + 1)
            elif goes_on and self._right():
                self._next = self._begun()
            if case.judgement.ok:
                self._run_case(case, look.seed, found[0])

    def _begun(self) -> _Look:
        look = _Look(secrets.randbelow(2**31), looks.move(), self._right())
        self._draw(look, 0)
        return look

    def _right(self) -> list[Case]:
        return [case for case in self._run.cases if case.judgement.ok]

    def _draw(self, look: _Look, place: int) -> None:
        """Begin to ask the task for a case of a look; the first one opens the look's pass."""
        case = look.cases[place]
        self._run.tighten(self._task)

        def ask() -> Drawn:
            if not place:
                self._task.open(look.seed)
            return self._task.case(case.index, look.seed, used=True, judged=False, move=look.move, reloads=case.reloads)

        self._drawing = self._beside.submit(ask)

    def _found(self) -> Drawn:
        """Return what was drawn; None where the reference fails or has no such case any more."""
        drawing, self._drawing = self._drawing, None
        assert drawing is not None
        try:
            return drawing.result()
        except Told:
            return None

    def _run_case(self, case: Case, seed: int, given: dict[str, Any]) -> None:
        self._run.tighten(self._candidate)
        begin = time.monotonic()
        try:
            _, _, facts = self._candidate.run(given, seed, judged=False, later=True)
        except Told as told:
            self._run.keep(case, 1, Judgement(told.error_type, told.message), begin)
            return
        case.took(facts)
        self.spent += float(facts.get("seconds", 0.0))
        made = Provenance.of(facts, numbers_of([given["inputs"], given["init"]]))
        judgement = self._run.compared(case, case.judgement, made, given["inputs"], "")
        if not judgement.ok:
            self._run.keep(case, 1, judgement, begin)
