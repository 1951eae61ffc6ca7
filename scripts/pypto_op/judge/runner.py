"""Runs cases: inputs from the reference process, the candidate in its own per mode, then the golden, then judgement.

In each trial the candidate runs before the golden does, so that what it is asked for does not exist yet. Modes never
short-circuit one another. Within a mode, a trial that did not pass decides the case, so the later seeds of that mode are
not run. Which cases share a process is told by `lanes`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from pypto_op.backends.base import Availability, Backend, Limits
from pypto_op.judge.barrier import Barrier
from pypto_op.judge.error_maps import ErrorMaps
from pypto_op.judge.inputs import FRESH
from pypto_op.judge.inspection import Probe
from pypto_op.judge.lane_worker import LaneWorker, LossCounter
from pypto_op.judge.lanes import lanes_of, onto_the_first, restricted
from pypto_op.judge.records import CaseRecord
from pypto_op.judge.references import References
from pypto_op.judge.sabotage import refuse_unshown
from pypto_op.judge.subject import Subject
from pypto_op.modes import REGISTRY
from pypto_op.proof.closure import Loaded
from pypto_op.vocabulary import Mode

if TYPE_CHECKING:
    from pypto_op.backends.base import Value
    from pypto_op.policy import Policy

WORKER_MB = 2048
"""Memory that one worker (reference and candidate processes) is counted with."""

Progress = Callable[[CaseRecord], None]


@dataclass(frozen=True)
class Plan:
    """Everything that a run of the judge needs to know.

    Attributes:
        subject: what is judged.
        cases: the selected cases, in the order of the suite.
        backends: the modes that were asked for.
        available: what each of them can do here.
        policy_for: the tolerance of a case.
        natural_policy_for: the twin policy that a case must satisfy beside it, if any.
        tolerance_behind: the tolerance that a policy named in a case stands in the place of, if any.
        suite: every case of the suite, which decides who shares a process (`lanes`); None: `cases` are all.
        further: call the wrapper again on one case of each lane (`repeats`).
        leaf_names: names of the outputs, in order, as the contract gives them.
        input_names: names of the primary inputs, in order.
        extra_seed: the second seed of every precision case.
        limits: what the candidate may use.
        jobs: how many lanes of cases run at once.
        cost_model: ask the backends for cost figures.
        error_maps: keeps where outputs are off.
        used_inputs: names of the primary inputs that the modules up to the boundary read; None: all of them.
        probe: compare this inspection buffer in the outputs' place.
        loaded: collects what the processes load beside the named files.
        check_inputs: raises ContractError for inputs that are not those of the contract.
    """

    subject: Subject
    cases: Sequence[Mapping[str, Any]]
    backends: Mapping[Mode, Backend]
    available: Mapping[Mode, Availability]
    policy_for: Callable[[Mapping[str, Any]], Policy]
    leaf_names: Sequence[str]
    input_names: Sequence[str]
    extra_seed: int
    limits: Limits = field(default_factory=Limits)
    jobs: int = 1
    cost_model: bool = False
    error_maps: ErrorMaps | None = None
    used_inputs: Sequence[str] | None = None
    probe: Probe | None = None
    loaded: Loaded = field(default_factory=Loaded)
    natural_policy_for: Callable[[Mapping[str, Any]], Policy | None] = lambda case: None
    tolerance_behind: Callable[[Mapping[str, Any]], Policy | None] = lambda case: None
    check_inputs: Callable[[Mapping[str, Any], Sequence[tuple[str, Value]]], None] = lambda case, made: None
    suite: Sequence[Mapping[str, Any]] | None = None
    further: bool = True


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
        self._barrier = Barrier(plan.subject.golden, plan.subject.impl)
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
            worker = LaneWorker(self._plan, self._losses, self._barrier, self._references(), self._onto)
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
