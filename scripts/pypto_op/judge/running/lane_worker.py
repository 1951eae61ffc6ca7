"""One lane: its cases one after another, in one candidate process per mode, then further calls of the wrapper."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pypto_op.backends.base import FILLINGS, Backend, Buffer, RunResult, Session
from pypto_op.backends.memory import NoMemoryLeft
from pypto_op.errors import ContractError, InfraError
from pypto_op.judge.answers import redraw
from pypto_op.judge.answers.expectation import Expectation, Reference
from pypto_op.judge.answers.references import ReferenceLoss, References
from pypto_op.judge.answers.verdict import failed_for, judge_run, refuse, with_earlier
from pypto_op.judge.cases import inspection
from pypto_op.judge.cases.calling import positions
from pypto_op.judge.cases.contract import MisfitInputs
from pypto_op.judge.cases.inputs import BESIDE, FRESH, checks_precision, digest, seeds_of, tensors_in, with_seed
from pypto_op.judge.findings.reasons import LOAD_FAILURES, NOT_LOADED, PROCESS_LOSSES, Reason, place_in
from pypto_op.judge.findings.records import CaseRecord, ModeRecord, TrialVerdict
from pypto_op.judge.findings.redaction import Redactor
from pypto_op.judge.running.repeats import Repeats
from pypto_op.judge.running.sabotage import RAISES, Saboteur
from pypto_op.judge.running.staleness import Answered, Staleness
from pypto_op.vocabulary import Mode, Outcome, Status

if TYPE_CHECKING:
    import torch

    from pypto_op.backends.base import Value
    from pypto_op.judge.answers.plan import Plan

MAX_PROCESS_LOSSES = 3
"""After so many lost processes in a row a mode is given up: 50 hanging cases must not cost 50 time-outs."""


class LossCounter:
    """Counts, per mode, the processes that were lost in a row; shared by all lanes."""

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


class LaneWorker:
    """One candidate process per mode, used for case after case of a lane.

    Args:
        references: answer for inputs and goldens; the caller closes them.
        onto: positions, in the suite, of the cases whose second seed is called on the tensors of the first.
    """

    def __init__(
        self, plan: Plan, losses: LossCounter, redactor: Redactor, references: References, onto: frozenset[int] = frozenset()
    ) -> None:
        self._plan, self._losses, self._redactor, self._references = plan, losses, redactor, references
        self._onto = onto
        self._stack = ExitStack()
        self._sessions: dict[Mode, Session] = {}
        self._broken: dict[Mode, TrialVerdict] = {}
        subject = plan.subject
        used = plan.input_names if plan.used_inputs is None else plan.used_inputs
        self._handed = positions(subject.impl, subject.wrapper, plan.input_names, used)
        self._staleness = Staleness(references, plan.input_names)
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
        """End the processes; harmless when called twice."""
        self._stack.close()

    def run(self, lane: Sequence[tuple[int, Mapping[str, Any]]]) -> Iterator[CaseRecord]:
        """Judge the cases of a lane in all modes, and yield their records as they are done.

        The case that the further calls are made on comes last.

        Args:
            lane: the cases, each with its position in the suite.
        """
        first = bool(lane) and lane[0][0] == 0
        repeats = Repeats(self._plan, self._references, self._sessions, self._verdict, self._handed, self._renewed, first)
        for position, case in lane:
            record, answered = self._case(case, again=position in self._onto)
            yield from repeats.offer(record, answered)
        yield from repeats.finish()

    def _case(self, case: Mapping[str, Any], *, again: bool) -> tuple[CaseRecord, list[Answered]]:
        """Judge one case in all modes; return its record, and what was asked and answered."""
        started = time.monotonic()
        answered: list[Answered] = []
        seeds = seeds_of(case, self._plan.extra_seed)
        record = CaseRecord(case, seeds, {mode: ModeRecord(mode) for mode in self._plan.backends})
        seen: set[str] = set()
        seed = seeds[-1]
        for place, own in enumerate(seeds):
            waiting = [mode for mode, m in record.modes.items() if m.status in (Status.PASS, Status.SKIPPED)]
            waiting = [mode for mode in waiting if not (record.modes[mode].trials and mode in self._broken)]
            if not waiting:
                break
            seed = self._apart(record, answered[0].inputs, own) if place and answered else own
            answered += self._trial(record, seed, waiting, seen, again=again and bool(answered))
        answered = self._redrawn(record, answered, seed, seen)
        record.seconds = time.monotonic() - started
        return record, answered

    def _apart(self, record: CaseRecord, first: Sequence[Value], seed: int) -> int:
        """Return the fresh seed, or one in its place where it draws a small input as the case's own seed did (`redraw`)."""
        names = self._plan.input_names
        fixed = {place for place, name in enumerate(names) if name in self._plan.fixed_inputs}
        try:
            *left, used = redraw.apart(first, seed, lambda s: self._references.inputs(with_seed(record.case, s)), fixed)
        except ContractError:
            return seed  # the trial will tell
        record.alike_draws += left
        return used

    def _redrawn(self, record: CaseRecord, answered: list[Answered], seed: int, seen: set[str]) -> list[Answered]:
        """Try other draws in the place of the fresh one, where a mode failed on sums that happen to cancel (`redraw`).

        Returns:
            What was asked and answered, without the draws that were left: no further call is made on them.
        """
        policy, left = self._plan.policy_for(record.case), seed
        for other in redraw.draws(seed):
            modes = [mode for mode, cell in record.modes.items() if redraw.may_be_redrawn(cell.trials, policy)]
            if not modes or self._plan.probe is not None:
                break
            inputs = self._references.inputs(with_seed(record.case, left))
            if not redraw.cancels(self._references.golden, inputs, policy):
                break
            for mode in modes:
                record.modes[mode].trials.pop()
            record.left_draws.append(left)
            answered = [one for one in answered if one.seed != left] + self._trial(record, other, modes, seen, again=False)
            left = other
        return answered

    def _trial(self, record: CaseRecord, seed: int, modes: Sequence[Mode], seen: set[str], *, again: bool) -> list[Answered]:
        """Judge a case with one seed; return what was asked and answered, [] where nothing was."""
        case = record.case
        runnable = [mode for mode in modes if self._runnable(record, mode, seed)]
        if not runnable:
            return []
        if lost := self._losses.reference.sentence:
            _refuse_all(record, runnable, refuse(Reason.GOLDEN_FAILED, f"{lost}, so it is not called again", seed=seed))
            return []
        try:
            return self._called(record, seed, runnable, seen, again=again)
        except NoMemoryLeft as full:
            if not case.get(FRESH):
                raise
            _refuse_all(record, runnable, refuse(Reason.NO_MEMORY_LEFT, full.problem, seed=seed))  # smaller sizes may do
            return []

    def _called(self, record: CaseRecord, seed: int, runnable: Sequence[Mode], seen: set[str], *, again: bool) -> list[Answered]:
        """Make the inputs of a case and judge what the candidate makes of them; see `_trial`."""
        case = record.case
        try:
            inputs = self._references.inputs(with_seed(case, seed))
        except ContractError as error:
            _refuse_all(record, runnable, refuse(Reason.INPUTS_FAILED, _kind(error), seed=seed))
            return []
        record.variety.add(self._plan.input_names, inputs)
        key = digest(inputs)
        if key in seen:
            return []  # The case ignores its seed: the same inputs again would teach nothing.
        seen.add(key)
        handed = self._given(inputs)
        if self._plan.probe is not None:
            self._inspect(record, case, seed, inputs, handed, runnable)
            return []
        beside = {mode: self._called_beside(case, seed, mode) for mode in runnable}
        runs = {mode: run or self._sessions[mode].run(record.id, handed, again=again, trial=True) for mode, run in beside.items()}
        return self._judge(record, case, seed, inputs, runs)

    def _called_beside(self, case: Mapping[str, Any], seed: int, mode: Mode) -> RunResult | None:
        """Call the wrapper, before a drawn case and in its process, with what differs from it along one axis.

        That is the case that it was made from, and that case with other sizes of the axis. Where a device would use one program
        for two of them, it shows that the wrapper builds two (`worker.compiled_once`). The answers are judged elsewhere: as
        cases of their own, or not at all.

        Returns:
            The run that shows it; None where none does.
        """
        template = case.get(FRESH)
        if not template:
            return None
        shapes = [*case.get(BESIDE, ()), template["shape"]]
        for other in ({**template, "shape": shape} for shape in shapes):
            with suppress(ContractError):  # which the template's own record tells
                inputs = self._given(self._references.inputs(with_seed(other, seed)))
                run = self._sessions[mode].run(str(other["id"]), inputs, guess=True, filling=FILLINGS[0], followed=True)
                if run.outcome is Outcome.STALE_PROGRAM:
                    return run
        return None

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
        self, record: CaseRecord, case: Mapping[str, Any], seed: int, inputs: Sequence[Value], runs: Mapping[Mode, RunResult]
    ) -> list[Answered]:
        expectation = self._expectation(case)
        loaded = any(run.outcome not in NOT_LOADED for run in runs.values())
        reference = self._references.answer(inputs, expectation) if loaded else None
        if reference is not None and expectation.precision:
            tolerance = expectation.behind or expectation.policy
            record.variety.add_answer(expectation.names, reference.native.outputs, tolerance)
        secrets = tensors_in(inputs)
        for golden in reference.runs() if reference else ():
            secrets += golden.outputs
        if reference is not None and (condition := self._references.condition(inputs, case)) is not None:
            record.conditions.append(condition)
            reference = replace(reference, condition=condition)
        for mode, run in runs.items():
            if self._plan.error_maps is not None:
                expectation = replace(expectation, keep_map=self._plan.error_maps.keeper(record.id, mode))
            self._note(record, mode, run, reference, expectation, seed, secrets, inputs)
            if run.late and record.modes[mode].status is Status.PASS:
                record.modes[mode].trials.pop()
                if second := self._confirming(record, mode, inputs):
                    self._note(record, mode, second, reference, expectation, seed, secrets, inputs)
        if reference is None or reference.problem() is not None:
            return []
        answered = Answered(case, seed, inputs, reference, expectation)
        self._staleness.note(answered)
        if all(len(m.trials) == 1 for m in record.modes.values()):
            self._sabotage(record, [mode for mode, m in record.modes.items() if m.status is Status.PASS], inputs, reference)
        return [answered]

    def _confirming(self, record: CaseRecord, mode: Mode, inputs: Sequence[Value]) -> RunResult | None:
        """Call the wrapper where nothing of it remembers these inputs, first on other values; None where that cannot be.

        What the host hands to a kernel is compared between two calls. A wrapper that knows the inputs of one when it gets
        those of the other may hand the same over again. The lane stays in the new process, and in this order. A wrapper that
        hands over something else than it was seen to do on other values may count its calls: no call of it goes unproven then.
        """
        broke_its_word = self._sessions[mode].others_first
        session = self._renewed(mode)
        if session is None:
            record.modes[mode].trials.append(self._broken[mode])
            return None
        session.others_first, session.others_always = True, broke_its_word
        return session.run(record.id, self._given(inputs))

    def _renewed(self, mode: Mode) -> Session | None:
        """Put a new process in the place of a mode's; None where it does not start (`_broken` says why)."""
        self._sessions.pop(mode).close()
        self._open(mode, self._plan.backends[mode])
        return self._sessions.get(mode)

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
            either=bool(case.get(FRESH)),
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
        inputs: Sequence[Value] = (),
    ) -> None:
        """Add the verdict on one run to the record."""
        verdict = judge_run(run, reference, expectation, seed=seed, redactor=self._redactor, secrets=secrets)
        if reference is not None and inputs:
            verdict = self._staleness.explained(verdict, run, Answered(record.case, seed, inputs, reference, expectation))
        record.modes[mode].trials.append(with_earlier(verdict, record.modes[mode].trials))
        self._losses.note(mode, lost=bool(verdict.reasons) and verdict.reasons[0] in PROCESS_LOSSES)
        if verdict.reasons and verdict.reasons[0] in LOAD_FAILURES:
            self._broken[mode] = verdict

    def _verdict(self, mode: Mode, run: RunResult, asked: Answered) -> TrialVerdict:
        """Judge a further call."""
        secrets = tensors_in(asked.inputs)
        for golden in asked.reference.runs():
            secrets += golden.outputs
        verdict = judge_run(run, asked.reference, asked.expectation, seed=asked.seed, redactor=self._redactor, secrets=secrets)
        verdict = self._staleness.explained(verdict, run, asked)
        self._staleness.note(asked)
        return verdict


def _refuse_all(record: CaseRecord, modes: Sequence[Mode], verdict: TrialVerdict) -> None:
    for mode in modes:
        record.modes[mode].trials.append(verdict)


def _kind(error: ContractError) -> str:
    """Say where it went wrong without repeating what the code said: its words may hold values."""
    if isinstance(error, MisfitInputs):
        return ", ".join(part for part in (error.where, error.problem) if part)
    return ", ".join(part for part in (error.where or "it raised", place_in(error.problem)) if part)
