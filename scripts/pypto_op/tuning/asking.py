"""What a search asks the clock about a text: here, or in another process whose simulator gives the same times."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pypto_op.backends.base import Limits
from pypto_op.judge.cases.contract import load_contract
from pypto_op.judge.cases.subject import resolve
from pypto_op.pool.parcel import Parcel
from pypto_op.pool.work import Bench, Say
from pypto_op.tuning.clock import Clock, Timed, ratio
from pypto_op.vocabulary import Mode
from pypto_op.workspace import OpWorkspace

GAIN = 0.01
"""Least share by which a candidate must be faster than another, whatever the noise: less is no news."""
_SLOWER = 1.6
"""A candidate is not timed on further shapes where it takes so many times the best one's time on the largest."""
_CALLS = 200
"""A text is run fewer times than this, each within the clock's limit."""


@dataclass(frozen=True)
class Question:
    """One text, and what it is compared with."""

    text: str  # of a candidate
    base: Mapping[str, float]  # case -> time of the kernel itself
    best_times: Mapping[str, float]  # case -> time of the best candidate so far; {} before there is one
    best: float  # its ratio

    def asked(self, clock: Clock) -> tuple[Timed, float]:
        """Time the text, then compare it on a few cases if it is worth that; return what it did, and after how many seconds."""
        begun = time.monotonic()
        timed = clock.time(self.text, base=self.best_times or self.base, slower=_SLOWER)
        whole = not timed.fault and len(timed.times) == len(self.base)
        if whole and ratio(timed.times, self.base) < self.best * (1.0 - GAIN / 2):
            checked = clock.check(self.text)
            if checked.fault:
                timed.fault, timed.failed, timed.ran = checked.fault, checked.failed, checked.ran
        return timed, round(time.monotonic() - begun, 3)


class Questions:
    """Questions as jobs."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    @property
    def silence(self) -> float:
        """Seconds without a word after which a question is asked elsewhere."""
        return _CALLS * self._clock.limits.case_seconds

    def here(self, payload: Question, say: Say) -> tuple[Timed, float]:
        """Ask this process's clock."""
        return payload.asked(self._clock)

    def away(self) -> ClockWork:
        """Return how they are answered elsewhere."""
        root = self._clock.contract.workspace.root
        return ClockWork(Parcel.of(root), self._clock.mode, self._clock.limits)

    def stop(self) -> None:
        """A question that is under way ends by itself, within its limits."""


@dataclass(frozen=True)
class ClockWork:
    """What another process needs to answer as this one's clock would."""

    parcel: Parcel  # the operator
    mode: Mode  # where kernels run
    limits: Limits  # what a candidate may use

    @contextlib.contextmanager
    def open(self) -> Iterator[Bench]:
        """Start a clock on a copy of the operator."""
        with self.parcel.unpacked() as copy:
            contract = load_contract(OpWorkspace(copy.root, copy.root.name))
            with Clock(contract, resolve(contract.workspace, contract.total_modules), self.mode, self.limits) as clock:
                yield _ClockBench(clock)


class _ClockBench:
    hello = None

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def do(self, payload: Question, say: Say) -> tuple[Timed, float]:
        """Answer one question."""
        return payload.asked(self._clock)
