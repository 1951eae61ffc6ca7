"""Deals a pool's jobs out to its hands: a free hand takes the next job, and another hand does the job of a lost one."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from queue import SimpleQueue
from typing import Any, Protocol

from pypto_op.errors import InfraError
from pypto_op.pool.work import Job, Say

MOST_LOSSES = 3
"""Hands that one job may cost before it is given up."""

_JOIN_SECONDS = 60.0


class HandLost(Exception):
    """A hand's process, host or device is gone; its job has no result."""


class Hand(Protocol):
    """Does one job at a time.

    Attributes:
        name: for people.
        shares: names what it shares with other hands, such as a machine's cores; a job that times has that for itself.
        up: it can do a job at once.
    """

    name: str
    shares: str

    @property
    def up(self) -> bool:
        """See above."""

    def start(self) -> None:
        """Get ready; harmless when it is. Raises HandLost."""

    def do(self, payload: Any, say: Say) -> Any:
        """Do one job. Raises HandLost, and what the job raises."""

    def again(self) -> bool:
        """Whether it may be started once more after a loss."""

    def end(self) -> None:
        """End it at once, whatever it does; harmless when called twice."""


@dataclass(frozen=True)
class _Word:
    """What a job said on its way."""

    job: Job
    word: Any


@dataclass(frozen=True)
class _Gone:
    """A hand that takes no further job."""

    name: str
    why: str


class Crew:
    """Hands, and the jobs that wait for them.

    Args:
        jobs: all of them, in the order in which they are begun.
        wanted: asked before a job is begun; what is not wanted any more gets no result.
        hear: told each word of a job.
    """

    def __init__(
        self,
        hands: Sequence[Hand],
        jobs: Sequence[Job],
        wanted: Callable[[Job], bool] = lambda job: True,
        hear: Callable[[Job, Any], None] = lambda job, word: None,
    ) -> None:
        self._hands, self._wanted, self._hear = hands, wanted, hear
        self._waiting, self._left = deque(jobs), len(jobs)
        self._losses: dict[str, list[str]] = {}
        self._running: dict[str, int] = {}
        self._alone: set[str] = set()
        self._starting, self._stopped = 0, False
        self._change = threading.Condition()
        self._out: SimpleQueue[tuple[Job, Any] | Job | _Word | _Gone | BaseException] = SimpleQueue()
        self._threads = [threading.Thread(target=self._serve, args=(hand,), name=hand.name, daemon=True) for hand in hands]

    def run(self) -> Iterator[tuple[Job, Any]]:
        """Yield each job with what came of it, as they are done.

        Raises:
            InfraError: no hand is left, or one job has cost too many of them.
            Exception: what a job raised.
        """
        for thread in self._threads:
            thread.start()
        hands, why = len(self._threads), ""
        while self._left:
            said = self._out.get()
            if isinstance(said, BaseException):
                raise said
            if isinstance(said, _Word):
                self._hear(said.job, said.word)
                continue
            if isinstance(said, _Gone):
                hands, why = hands - 1, f"{said.name}: {said.why}" if said.why else why
                if not hands and self._left:
                    raise InfraError(f"no worker of the pool is left ({why})", remedy="see docs/pool.md, then run it again")
                continue
            self._left -= 1
            if not isinstance(said, Job):
                yield said

    def stop(self) -> None:
        """Begin no further job; what is under way is ended."""
        with self._change:
            self._stopped = True
            self._waiting.clear()
            self._change.notify_all()
        for hand in self._hands:
            hand.end()

    def join(self) -> None:
        """Wait for the threads of the hands; after `run` has ended, or `stop`."""
        deadline = time.monotonic() + _JOIN_SECONDS
        for thread in self._threads:
            if thread.is_alive():
                thread.join(max(0.0, deadline - time.monotonic()))

    # -- the thread of a hand -------------------------------------------------------------------------------

    def _serve(self, hand: Hand) -> None:
        why = ""
        try:
            while not self._stopped:
                job = None
                try:
                    if not self._ready(hand) or (job := self._take(hand)) is None:
                        break
                    value = hand.do(job.payload, partial(self._say, job))
                except HandLost as loss:
                    why = str(loss)
                    self._lost(hand, job, why)
                    if not hand.again():
                        break
                else:
                    self._finished(hand, job)
                    self._out.put((job, value))
        except BaseException as error:
            self._out.put(error)
        self._out.put(_Gone(hand.name, why))

    def _ready(self, hand: Hand) -> bool:
        """Start a hand once there are jobs for it; whether there were any.

        One that waits for its host, perhaps for ever, holds no job: those that are up take what there is.
        """
        if hand.up:
            return True
        with self._change:
            while len(self._waiting) <= self._starting:
                if self._stopped or not (self._waiting or any(self._running.values())):
                    return False
                self._change.wait()
            self._starting += 1
        try:
            hand.start()
        finally:
            with self._change:
                self._starting -= 1
                self._change.notify_all()
        return True

    def _say(self, job: Job, word: Any) -> None:
        self._out.put(_Word(job, word))

    def _take(self, hand: Hand) -> Job | None:
        """Return the next job for this hand; None when there is none and none can come back."""
        with self._change:
            while True:
                while self._waiting and not self._wanted(self._waiting[0]):
                    self._out.put(self._waiting.popleft())
                if self._stopped or (not self._waiting and not any(self._running.values())):
                    self._change.notify_all()
                    return None
                if self._waiting and self._may_begin(self._waiting[0], hand.shares):
                    job = self._waiting.popleft()
                    self._running[hand.shares] = self._running.get(hand.shares, 0) + 1
                    if job.alone:
                        self._alone.add(hand.shares)
                    return job
                self._change.wait()

    def _may_begin(self, job: Job, shares: str) -> bool:
        if shares in self._alone:
            return False
        return not (job.alone and self._running.get(shares, 0))

    def _finished(self, hand: Hand, job: Job) -> None:
        with self._change:
            self._running[hand.shares] -= 1
            if job.alone:
                self._alone.discard(hand.shares)
            self._change.notify_all()

    def _lost(self, hand: Hand, job: Job | None, why: str) -> None:
        """Give a job back, the first in the row; one that has cost too many hands ends the run."""
        if job is None:
            return
        losses = self._losses.setdefault(job.key, [])
        losses.append(f"{hand.name}: {why}")
        with self._change:
            if not self._stopped:
                self._waiting.appendleft(job)
        self._finished(hand, job)
        if len(losses) >= MOST_LOSSES:
            self._out.put(InfraError(f"{job.key} has cost {len(losses)} workers ({losses[-1]})", remedy="see docs/pool.md"))
