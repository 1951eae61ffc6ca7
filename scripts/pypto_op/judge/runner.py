"""Runs cases: inputs from the reference process, the candidate in its own per mode, then the golden, then judgement.

The candidate runs before the golden does, so that no reference value exists anywhere on the machine while
candidate code is running. Modes never short-circuit one another. Within a mode, a trial that did not pass decides
the case, so the later seeds of that mode are not run.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pypto_op.backends.base import Availability, Backend, Buffer, Limits, RunResult, Session
from pypto_op.errors import ContractError, InfraError
from pypto_op.judge import inspection
from pypto_op.judge.barrier import Barrier
from pypto_op.judge.calling import positions
from pypto_op.judge.error_maps import ErrorMaps
from pypto_op.judge.inputs import checks_precision, digest, seeds_of, tensors_in, with_seed
from pypto_op.judge.inspection import Probe
from pypto_op.judge.reasons import LOAD_FAILURES, PROCESS_LOSSES, Reason
from pypto_op.judge.records import CaseRecord, ModeRecord, TrialVerdict
from pypto_op.judge.references import ReferenceLoss, References
from pypto_op.judge.sabotage import RAISES, Saboteur, refuse_unshown
from pypto_op.judge.subject import Subject
from pypto_op.judge.verdict import Expectation, Reference, failed_for, judge_run, refuse, with_earlier
from pypto_op.state.closure import Loaded
from pypto_op.vocabulary import Mode, Outcome, Status

if TYPE_CHECKING:
    import torch

    from pypto_op.backends.base import Value
    from pypto_op.policy import Policy

MAX_PROCESS_LOSSES = 3
"""After so many lost processes in a row a mode is given up: 50 hanging cases must not cost 50 time-outs."""

WORKER_MB = 2048
"""Memory that one worker (reference and candidate processes) is counted with."""

CASES_PER_WORKER = 8
"""A further worker pays for its start from about so many cases on."""

NOT_LOADED = frozenset(
    {
        Outcome.MISSING_FILE,
        Outcome.SYNTAX_ERROR,
        Outcome.IMPORT_ERROR,
        Outcome.MISSING_WRAPPER,
        Outcome.UNAVAILABLE,
    }
)
"""Outcomes of a candidate that never ran, so that no golden is needed to judge it."""

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
        leaf_names: names of the outputs, in order, as the contract gives them.
        input_names: names of the primary inputs, in order.
        extra_seed: the second seed of every precision case.
        limits: what the candidate may use.
        jobs: how many cases run at once.
        cost_model: ask the backends for cost figures.
        error_maps: keeps where outputs are off.
        used_inputs: names of the primary inputs that the modules up to the boundary read; None: all of them.
        probe: compare this inspection buffer in the outputs' place.
        loaded: collects what the processes load beside the named files.
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


def worker_count(cases: int) -> int:
    """Return how many cases to run at once: a worker costs a start of seconds and some memory, so few cases get one.

    Args:
        cases: how many there are.
    """
    import os

    import psutil

    by_memory = int(psutil.virtual_memory().available // (WORKER_MB * 2**20))
    return max(1, min(os.cpu_count() or 1, by_memory, cases // CASES_PER_WORKER))


class _Pool:
    """Workers that take cases from one list; closing it ends every process they started."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._local = threading.local()
        self._lock = threading.Lock()
        self._workers: list[_Worker] = []
        self._losses = LossCounter()
        self._barrier = Barrier(plan.subject.golden, plan.subject.impl)

    def run(self, progress: Progress | None) -> list[CaseRecord]:
        jobs = max(1, min(self._plan.jobs, len(self._plan.cases)))
        records: list[CaseRecord | None] = [None] * len(self._plan.cases)
        executor = ThreadPoolExecutor(max_workers=jobs, thread_name_prefix="judge")
        try:
            futures = {executor.submit(self._one, case): i for i, case in enumerate(self._plan.cases)}
            for future in as_completed(futures):
                record = future.result()
                records[futures[future]] = record
                if progress is not None:
                    progress(record)
        except BaseException:
            # An interrupt must not wait for a hung case: closing the sessions ends what the threads wait for.
            executor.shutdown(wait=False, cancel_futures=True)
            self.close()
            raise
        executor.shutdown()
        return [record for record in records if record is not None]

    def _one(self, case: Mapping[str, Any]) -> CaseRecord:
        worker: _Worker | None = getattr(self._local, "worker", None)
        if worker is None:
            worker = _Worker(self._plan, self._losses, self._barrier)
            with self._lock:
                self._workers.append(worker)
            self._local.worker = worker
        return worker.run(case)

    def close(self) -> None:
        with self._lock:
            workers, self._workers = self._workers, []
        for worker in workers:
            worker.close()


class LossCounter:
    """Counts, per mode, the processes that were lost in a row; shared by all workers."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lost: dict[Mode, int] = {}
        self.reference = ReferenceLoss()

    def given_up(self, mode: Mode) -> bool:
        """Whether `mode` has lost too many processes to go on."""
        with self._lock:
            return self._lost.get(mode, 0) >= MAX_PROCESS_LOSSES

    def note(self, mode: Mode, lost: bool) -> None:
        """Remember how the latest run of `mode` ended."""
        with self._lock:
            self._lost[mode] = self._lost.get(mode, 0) + 1 if lost else 0


class _Worker:
    """One reference process and one candidate process per mode, used for case after case."""

    def __init__(self, plan: Plan, losses: LossCounter, barrier: Barrier) -> None:
        self._plan, self._losses, self._barrier = plan, losses, barrier
        self._stack = ExitStack()
        self._sessions: dict[Mode, Session] = {}
        self._broken: dict[Mode, TrialVerdict] = {}
        subject = plan.subject
        used = plan.input_names if plan.used_inputs is None else plan.used_inputs
        self._handed = positions(subject.impl, subject.wrapper, plan.input_names, used)
        self._references = References(plan, losses.reference)
        self._stack.callback(self._references.close)
        self._saboteur = Saboteur(subject, plan.backends, plan.limits, plan.loaded)
        self._stack.callback(self._saboteur.close)
        for mode, backend in plan.backends.items():
            self._open(mode, backend)

    def _open(self, mode: Mode, backend: Backend) -> None:
        subject, available, probe = self._plan.subject, self._plan.available[mode], self._plan.probe
        if not available.ok:
            self._broken[mode] = refuse(Reason.UNAVAILABLE, available.reason)
            return
        if probe is not None and not inspection.takes(subject.impl, subject.wrapper, probe):
            self._broken[mode] = refuse(Reason.MISSING_PROBE, f"{subject.wrapper} has no parameter {probe.buffer}")
            return
        try:
            session = backend.open(
                subject.impl,
                subject.wrapper,
                subject.workspace,
                limits=self._plan.limits,
                cost_model=self._plan.cost_model,
            )
            self._sessions[mode] = self._stack.enter_context(session)
            self._stack.callback(lambda: self._plan.loaded.note_all(session.loaded))
        except InfraError as error:
            self._broken[mode] = refuse(Reason.UNAVAILABLE, error.problem)

    def close(self) -> None:
        self._stack.close()

    def run(self, case: Mapping[str, Any]) -> CaseRecord:
        """Judge one case in all modes."""
        started = time.monotonic()
        seeds = seeds_of(case, self._plan.extra_seed)
        record = CaseRecord(case, seeds, {mode: ModeRecord(mode) for mode in self._plan.backends})
        seen: set[str] = set()
        for seed in seeds:
            waiting = [mode for mode, m in record.modes.items() if m.status in (Status.PASS, Status.SKIPPED)]
            waiting = [mode for mode in waiting if not (record.modes[mode].trials and mode in self._broken)]
            if not waiting:
                break
            self._trial(record, case, seed, waiting, seen)
        record.seconds = time.monotonic() - started
        return record

    def _trial(self, record: CaseRecord, case: Mapping[str, Any], seed: int, modes: Sequence[Mode], seen: set[str]) -> None:
        runnable = [mode for mode in modes if self._runnable(record, mode, seed)]
        if not runnable:
            return
        if lost := self._losses.reference.sentence:
            _refuse_all(record, runnable, refuse(Reason.GOLDEN_FAILED, f"{lost}, so it is not called again", seed=seed))
            return
        try:
            inputs = self._references.inputs(with_seed(case, seed))
        except ContractError as error:
            _refuse_all(record, runnable, refuse(Reason.INPUTS_FAILED, _kind(error), seed=seed))
            return
        key = digest(inputs)
        if key in seen:
            return  # The case ignores its seed: the same inputs again would teach nothing.
        seen.add(key)
        handed = self._given(inputs)
        if self._plan.probe is not None:
            self._inspect(record, case, seed, inputs, handed, runnable)
            return
        runs = {mode: self._sessions[mode].run(record.id, handed) for mode in runnable}
        self._judge(record, case, seed, inputs, runs)

    def _inspect(
        self,
        record: CaseRecord,
        case: Mapping[str, Any],
        seed: int,
        inputs: Sequence[Value],
        handed: Sequence[Value],
        modes: Sequence[Mode],
    ) -> None:
        """Compare the inspection buffer in the outputs' place; the golden says how large it must be."""
        probe = self._plan.probe
        assert probe is not None
        try:
            expected = self._references.probe(inputs)
        except ContractError as error:
            _refuse_all(record, modes, refuse(Reason.GOLDEN_FAILED, error.problem, seed=seed))
            return
        truth = expected.outputs[0]
        buffer = Buffer(probe.buffer, tuple(truth.shape), str(truth.dtype).removeprefix("torch."))
        plain = self._expectation(case)
        expectation = replace(plain, names=[probe.buffer], natural=None, behind=None, policy=inspection.fixed(plain.policy))
        for mode in modes:
            run = self._sessions[mode].run(record.id, handed, buffer=buffer)
            reference = Reference(expected)
            self._note(record, mode, run, reference, expectation, seed, tensors_in(inputs) + [truth])
            trial = record.modes[mode].trials[-1]
            if expectation.precision and trial.per_tensor:
                trial.per_iter = inspection.per_iteration(run.outputs[0], truth, expectation.policy)

    def _runnable(self, record: CaseRecord, mode: Mode, seed: int) -> bool:
        """Whether `mode` can still run; if not, the record says why, once."""
        trials = record.modes[mode].trials
        verdict = self._broken.get(mode)
        if verdict is None and self._losses.given_up(mode):
            verdict = refuse(Reason.NOT_RUN, f"{MAX_PROCESS_LOSSES} in a row", seed=seed)
        if verdict is None:
            return True
        if not trials:
            trials.append(verdict)
        return False

    def _judge(
        self,
        record: CaseRecord,
        case: Mapping[str, Any],
        seed: int,
        inputs: Sequence[Value],
        runs: Mapping[Mode, RunResult],
    ) -> None:
        expectation = self._expectation(case)
        loaded = any(run.outcome not in NOT_LOADED for run in runs.values())
        reference = self._references.answer(inputs, expectation) if loaded else None
        secrets = tensors_in(inputs)
        for golden in reference.runs() if reference else ():
            secrets += golden.outputs
        if reference is not None and (condition := self._references.condition(inputs, case)) is not None:
            record.conditions.append(condition)
            reference = replace(reference, condition=condition)
        for mode, run in runs.items():
            if self._plan.error_maps is not None:
                expectation = replace(expectation, keep_map=self._plan.error_maps.keeper(record.id, mode))
            self._note(record, mode, run, reference, expectation, seed, secrets)
        if reference is not None and all(len(m.trials) == 1 for m in record.modes.values()):
            self._sabotage(record, [mode for mode, m in record.modes.items() if m.status is Status.PASS], inputs, reference)

    def _sabotage(self, record: CaseRecord, modes: Sequence[Mode], inputs: Sequence[Value], reference: Reference) -> None:
        """Run what passed once more without kernels, and refuse it if an output is right all the same."""
        expectation = self._expectation(record.case)
        for mode in modes:
            trials = record.modes[mode].trials
            if not self._saboteur.can_tell(mode, expectation):
                continue
            right = self._saboteur.right_outputs(mode, record.id, self._given(inputs), reference, expectation)
            record.modes[mode].silent_runs.append(right is not None)
            if right is None:
                trials[-1].unshown += (RAISES,)
            elif right:
                trials[-1] = failed_for(Reason.KERNEL_UNUSED, trials[-1], ", ".join(right))

    def _given(self, inputs: Sequence[Value]) -> list[Value]:
        """Return what the wrapper is called with."""
        return [inputs[i] for i in self._handed] if len(inputs) == len(self._plan.input_names) else list(inputs)

    def _expectation(self, case: Mapping[str, Any]) -> Expectation:
        return Expectation(
            names=self._plan.leaf_names,
            input_names=[self._plan.input_names[i] for i in self._handed],
            policy=self._plan.policy_for(case),
            precision=checks_precision(case),
            natural=self._plan.natural_policy_for(case),
            behind=self._plan.tolerance_behind(case),
        )

    def _note(
        self,
        record: CaseRecord,
        mode: Mode,
        run: RunResult,
        reference: Reference | None,
        expectation: Expectation,
        seed: int,
        secrets: Sequence[torch.Tensor],
    ) -> None:
        """Add the verdict on one run to the record."""
        verdict = judge_run(run, reference, expectation, seed=seed, barrier=self._barrier, secrets=secrets)
        record.modes[mode].trials.append(with_earlier(verdict, record.modes[mode].trials))
        self._losses.note(mode, lost=bool(verdict.reasons) and verdict.reasons[0] in PROCESS_LOSSES)
        if verdict.reasons and verdict.reasons[0] in LOAD_FAILURES:
            self._broken[mode] = verdict


def _refuse_all(record: CaseRecord, modes: Sequence[Mode], verdict: TrialVerdict) -> None:
    for mode in modes:
        record.modes[mode].trials.append(verdict)


def _kind(error: ContractError) -> str:
    """Say where it went wrong without repeating what the code said: its words may hold values."""
    return error.where or "it raised"
