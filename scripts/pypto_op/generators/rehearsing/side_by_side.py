"""Tries cases at once: each thread asks a reference process of its own, and judges what comes back while the others compute."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from types import TracebackType
from typing import TypeVar

from pypto_op.backends.base import Limits
from pypto_op.backends.cores import usable
from pypto_op.backends.reference import ReferenceSession
from pypto_op.documents.policy import Policy
from pypto_op.generators.rehearsing.first_candidate import FirstCandidate
from pypto_op.judge.answers.measured import Measured
from pypto_op.workspace import OpWorkspace

MOST = 4
"""References at most: each imports torch, which takes as long as five cases."""

Found = TypeVar("Found")


class SideBySide:
    """References of one golden; a context manager that leaves nothing running, and waits for no work that nobody wants.

    Args:
        ws: the operator.
        policy: its tolerance.
        limits: of each call of a reference.
        cases: how many there are to try; one reference is enough for few.
    """

    def __init__(self, ws: OpWorkspace, policy: Policy, limits: Limits, cases: int) -> None:
        count = max(1, min(MOST, usable(), cases // 5))
        self._sessions = [ReferenceSession(ws, limits=limits) for _ in range(count)]
        self._measured = Measured(ws, self._sessions)
        self._free: SimpleQueue[FirstCandidate] = SimpleQueue()
        for session in self._sessions:
            self._free.put(FirstCandidate(session, ws, policy, self._measured))
        self._threads = ThreadPoolExecutor(count, thread_name_prefix="rehearsal")

    def __enter__(self) -> SideBySide:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        for session in self._sessions:
            session.close()  # what is being asked ends with its process
        self._threads.shutdown(wait=True)

    def begin(self, work: Callable[[FirstCandidate], Found]) -> Future[Found]:
        """Have work done by the next free reference, in the order of these calls."""

        def done() -> Found:
            first = self._free.get()
            try:
                return work(first)
            finally:
                self._free.put(first)

        return self._threads.submit(done)

    def do(self, work: Callable[[FirstCandidate], Found]) -> Found:
        """Have work done and wait for it."""
        return self.begin(work).result()

    def keep(self) -> None:
        """Seal what was measured of honest rounding."""
        self._measured.keep()
