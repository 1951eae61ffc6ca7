"""Runs cases: inputs from the reference process, the candidate in its own per mode, then the golden, then judgement.

In each trial the candidate runs before the golden does, so that what it is asked for does not exist yet. Modes never
short-circuit one another. Within a mode, a trial that did not pass decides the case, so the later seeds of that mode are
not run. Which cases share a process is told by `lanes`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from pypto_op.judge.inputs import FRESH
from pypto_op.judge.lane_worker import LaneWorker, LossCounter
from pypto_op.judge.lanes import lanes_of, onto_the_first, restricted
from pypto_op.judge.plan import Plan
from pypto_op.judge.records import CaseRecord
from pypto_op.judge.redaction import Redactor
from pypto_op.judge.references import References
from pypto_op.judge.sabotage import refuse_unshown
from pypto_op.modes import REGISTRY

if TYPE_CHECKING:
    pass

WORKER_MB = 2048
"""Memory that one worker (reference and candidate processes) is counted with."""

Progress = Callable[[CaseRecord], None]


def run_cases(plan: Plan, progress: Progress | None = None) -> list[CaseRecord]:
    """Judge every case of `plan` in every mode; the records come back in the order of the suite.

    Raises:
        InfraError: the reference process cannot run on this machine.
    """
    pool = _Pool(plan)
    try:
        records = pool.run(progress)
        refuse_unshown(records)
        return records
    finally:
        pool.close()


def worker_count(cases: Sequence[Mapping[str, Any]]) -> int:
    """Return how many lanes of a suite to run at once on this machine: as many as cores and memory allow.

    Args:
        cases: of the suite.
    """
    import os

    import psutil

    by_memory = int(psutil.virtual_memory().available // (WORKER_MB * 2**20))
    return max(1, min(os.cpu_count() or 1, by_memory, len(lanes_of(cases))))


class _Pool:
    """Threads that take lanes from one list; closing it ends every process they started."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._local = threading.local()
        self._lock = threading.Lock()
        self._open: list[LaneWorker | References] = []
        self._losses = LossCounter()
        self._redactor = Redactor(plan.subject.golden, plan.subject.impl)
        suite = plan.cases if plan.suite is None else plan.suite
        self._onto = onto_the_first(suite)
        place = {str(case["id"]): position for position, case in enumerate(suite)}
        # A drawn case comes last in a lane, where calls with fewer elements follow it; a case that stands in no suite and
        # was not drawn (`judge_case`) has a lane of its own.
        self._cases = {place.get(str(case["id"]), len(suite) + i): case for i, case in enumerate(plan.cases)}
        lanes = lanes_of(suite)
        for position in [position for position in self._cases if position >= len(suite)]:
            if self._cases[position].get(FRESH):
                lanes[position % len(lanes)].append(position)
            else:
                lanes.append([position])
        self._lanes = restricted(lanes, list(self._cases))

    def run(self, progress: Progress | None) -> list[CaseRecord]:
        # A device serves one process at a time, and the others would wait for it.
        device = any(REGISTRY[mode].on_device and self._plan.available[mode].ok for mode in self._plan.backends)
        jobs = 1 if device else max(1, min(self._plan.jobs, len(self._lanes)))
        records: dict[str, CaseRecord] = {}
        done: SimpleQueue[CaseRecord | BaseException] = SimpleQueue()
        executor = ThreadPoolExecutor(max_workers=jobs, thread_name_prefix="judge")
        try:
            for lane in self._lanes:
                executor.submit(self._lane, lane, done)
            while len(records) < len(self._cases):
                record = done.get()
                if isinstance(record, BaseException):
                    raise record
                records[record.id] = record
                if progress is not None:
                    progress(record)
        except BaseException:
            # An interrupt must not wait for a hung case: closing the sessions ends what the threads wait for.
            executor.shutdown(wait=False, cancel_futures=True)
            self.close()
            raise
        executor.shutdown()
        return [records[str(case["id"])] for case in self._plan.cases]

    def _lane(self, lane: Sequence[int], done: SimpleQueue[CaseRecord | BaseException]) -> None:
        """Judge the cases of one lane in processes of its own; only the reference process serves other lanes too."""
        try:
            worker = LaneWorker(self._plan, self._losses, self._redactor, self._references(), self._onto)
            self._remember(worker)
            try:
                for record in worker.run([(position, self._cases[position]) for position in lane]):
                    done.put(record)
            finally:
                worker.close()
        except BaseException as error:
            done.put(error)

    def _references(self) -> References:
        references: References | None = getattr(self._local, "references", None)
        if references is None:
            references = self._local.references = References(self._plan, self._losses.reference)
            self._remember(references)
        return references

    def _remember(self, opened: LaneWorker | References) -> None:
        with self._lock:
            self._open.append(opened)

    def close(self) -> None:
        with self._lock:
            opened, self._open = self._open, []
        for one in opened:
            one.close()
