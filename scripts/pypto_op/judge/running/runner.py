"""Runs cases: inputs from the reference process, the candidate in its own per mode, then the golden, then judgement.

In each trial the candidate runs before the golden does, so that what it is asked for does not exist yet. Modes never
short-circuit one another. Within a mode, a trial that did not pass decides the case, so the later seeds of that mode are
not run. Which cases share a process is told by `lanes`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pypto_op.backends.base import HasDevices, Limits
from pypto_op.backends.cores import usable
from pypto_op.backends.memory import NoMemoryLeft, available_mb
from pypto_op.errors import InfraError
from pypto_op.judge.answers.plan import Plan
from pypto_op.judge.answers.references import References
from pypto_op.judge.answers.verdict import refuse
from pypto_op.judge.cases.inputs import FRESH, seeds_of
from pypto_op.judge.findings.reasons import Reason
from pypto_op.judge.findings.records import CaseRecord, ModeRecord
from pypto_op.judge.findings.redaction import Redactor
from pypto_op.judge.running.lane_worker import LaneWorker, LossCounter
from pypto_op.judge.running.lanes import lanes_of, onto_the_first, restricted
from pypto_op.judge.running.raises import judge_raises, refusal_case
from pypto_op.judge.running.sabotage import refuse_unshown
from pypto_op.modes import REGISTRY
from pypto_op.pool.pool import Need, Pool
from pypto_op.pool.work import Job, Say, Work

WORKER_MB = 2048
"""Memory that one worker (reference and candidate processes) is counted with."""

MOST_JOBS = 64
"""Jobs at once on a cluster, which has as many workers as it has room for."""

_CALLS_A_CASE = 30
"""A case makes fewer calls than this, each of which may take `Limits.case_seconds`: two seeds, silent runs, further calls."""

Progress = Callable[[CaseRecord], None]


def run_cases(
    plan: Plan,
    progress: Progress | None = None,
    pool: Pool | None = None,
    away: Callable[[], Work] | None = None,
    raises: Sequence[Mapping[str, Any]] = (),
    greet: Callable[[Any], None] = lambda hello: None,
) -> list[CaseRecord]:
    """Judge every case of `plan` in every mode; the records come back in the order of the suite, those of `raises` last.

    Args:
        progress: called with each record as it is made.
        pool: where; default: this machine.
        away: how lanes are judged in other processes (`judge.running.away`); without it they are judged in this one.
        raises: what the wrapper must refuse (`judge.running.raises`).
        greet: told what each other machine can do: mode -> `Availability`.

    Raises:
        InfraError: the reference process cannot run, or the pool is lost.
    """
    lanes = Lanes(plan, away, raises)
    try:
        records, refusals = lanes.run(progress, Pool() if pool is None or away is None else pool, greet)
        refuse_unshown(records)
        return records + refusals
    finally:
        lanes.stop()


def worker_count(cases: Sequence[Mapping[str, Any]]) -> int:
    """Return how many lanes of a suite to run at once on this machine: as many as cores and memory allow."""
    return max(1, min(usable(), available_mb() // WORKER_MB, len(lanes_of(cases))))


def silence_of(limits: Limits) -> float:
    """Return after how many seconds without a record somebody who judges cases elsewhere is lost."""
    return _CALLS_A_CASE * limits.case_seconds


@dataclass(frozen=True)
class LaneAnswer:
    """What became of a lane."""

    records: Sequence[CaseRecord]  # of its cases
    told: Any = None  # where it was judged in another process: what that one brought along (`judge.running.away.Told`)


class Lanes:
    """The lanes of a plan, each a job; stopping ends every process that they started.

    Args:
        away: how they are judged in other processes.
        raises: what the wrapper must refuse: one more job.
    """

    def __init__(self, plan: Plan, away: Callable[[], Work] | None = None, raises: Sequence[Mapping[str, Any]] = ()) -> None:
        self._plan, self._away, self._raises = plan, away, raises
        self._local = threading.local()
        self._lock = threading.Lock()
        self._open: list[LaneWorker | References] = []
        self._stopped = False
        self._losses = LossCounter()
        self._redactor = Redactor(plan.subject.golden, plan.subject.impl)
        self.silence = silence_of(plan.limits)
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

    def run(
        self, progress: Progress | None, pool: Pool, greet: Callable[[Any], None] = lambda hello: None
    ) -> tuple[list[CaseRecord], list[CaseRecord]]:
        """Judge all of them on a pool; return the records of the cases, and those of what must be refused."""
        jobs = [Job(f"the lane of case {self._cases[lane[0]]['id']}", tuple(lane)) for lane in self._lanes]
        if self._raises:
            jobs.append(Job("what the wrapper must refuse", None))
        refusals: list[CaseRecord] = []
        records: dict[str, CaseRecord] = {}
        told: set[str] = set()

        def hear(job: Job, record: CaseRecord) -> None:
            if progress is not None and record.id not in told:  # a lane that was lost begins anew
                told.add(record.id)
                progress(record)

        need = need_of(self._plan)
        if self._away is None:
            need = replace(need, devices=())  # nobody said how they are judged elsewhere: one device, from this process
        for job, answer in pool.run(self, jobs, size=self._plan.jobs, need=need, hear=hear, greet=greet):
            if answer.told is not None:
                answer.told.bring(self._plan)
            if job.payload is None:
                refusals += answer.records
            else:
                records |= {record.id: record for record in answer.records}
        return [records[str(case["id"])] for case in self._plan.cases], refusals

    def here(self, payload: Sequence[int] | None, say: Say) -> LaneAnswer:
        """Judge the cases of one lane in processes of its own; only the reference process serves other lanes too."""
        if payload is None:
            return LaneAnswer(self._refused())
        worker = LaneWorker(self._plan, self._losses, self._redactor, self._references(), self._onto)
        self._remember(worker)
        records: list[CaseRecord] = []
        try:
            for record in worker.run([(position, self._cases[position]) for position in payload]):
                records.append(record)
                say(record)
        except NoMemoryLeft as full:  # what other cases have shown stands: a wrong kernel stays wrong on a small machine
            judged = {record.id for record in records}
            lost = (self._cases[position] for position in payload)
            records += [self._unjudged(case, full) for case in lost if str(case["id"]) not in judged]
        finally:
            worker.close()
        return LaneAnswer(records)

    def _refused(self) -> list[CaseRecord]:
        """Judge what the wrapper must refuse."""
        try:
            return judge_raises(self._plan, self._raises)
        except NoMemoryLeft as full:
            return [self._unjudged(refusal_case(told), full) for told in self._raises]

    def _unjudged(self, case: Mapping[str, Any], full: NoMemoryLeft) -> CaseRecord:
        """Return the record of a case that the machine had no memory for."""
        seeds = seeds_of(case, self._plan.extra_seed)
        refused = refuse(Reason.NO_MEMORY_LEFT, full.problem, seed=seeds[0])
        return CaseRecord(case, seeds, {mode: ModeRecord(mode, [refused]) for mode in self._plan.backends})

    def away(self) -> Work:
        """Return how they are judged in other processes."""
        assert self._away is not None
        return self._away()

    def stop(self) -> None:
        """End the processes; harmless when called twice."""
        with self._lock:
            opened, self._open, self._stopped = self._open, [], True
        for one in opened:
            one.close()

    def note_loaded(self) -> None:
        """Let the plan know what the references have loaded so far."""
        with self._lock:
            for one in self._open:
                if isinstance(one, References):
                    one.note_loaded()

    def _references(self) -> References:
        references: References | None = getattr(self._local, "references", None)
        if references is None:
            references = self._local.references = References(self._plan, self._losses.reference)
            self._remember(references)
        return references

    def _remember(self, opened: LaneWorker | References) -> None:
        """Keep what is to be closed; a thread that opens it after the others were closed has nobody who would."""
        with self._lock:
            if not self._stopped:
                self._open.append(opened)
                return
        opened.close()
        raise InfraError("the lanes were stopped")


def need_of(plan: Plan) -> Need:
    """Return what a job of a plan occupies: a device where one of its modes runs on one, which serves one process at a time."""
    wanted = [mode for mode in plan.backends if REGISTRY[mode].on_device]
    here = [backend for mode, backend in plan.backends.items() if mode in wanted and plan.available[mode].ok]
    devices = tuple(index for backend in here if isinstance(backend, HasDevices) for index in backend.devices())
    return Need(npu=bool(wanted), devices=devices, here=bool(here))
