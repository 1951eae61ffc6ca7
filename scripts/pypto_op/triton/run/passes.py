"""The passes of a verification over the cases of a task, and what they found."""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from pypto_op.documents.policy import Policy
from pypto_op.errors import ContractError, PyptoOpError
from pypto_op.triton.run import aside, looking, reordered
from pypto_op.triton.run.case import Case
from pypto_op.triton.run.inputs import arguments, beyond, edges, reloaded, skewed
from pypto_op.triton.run.inputs.describe import describe
from pypto_op.triton.run.judging import agreement, equals, looks, remote, small, trivial
from pypto_op.triton.run.judging.judge_device import JudgeDevice
from pypto_op.triton.run.judging.judgement import Judgement, judge, second_look
from pypto_op.triton.run.judging.provenance import Provenance
from pypto_op.triton.run.processes.model import numbers_of
from pypto_op.triton.run.processes.sessions import Answered, CandidateSession, Started, TaskSession, Told
from pypto_op.triton.run.reading import Beside
from pypto_op.triton.run.replay import History
from pypto_op.triton.run.setup.deadline import Deadline, TimeIsUp
from pypto_op.triton.run.setup.project import Project
from pypto_op.triton.run.setup.request import Request
from pypto_op.triton.run.setup.targets import Place, Target
from pypto_op.triton.run.watching import configurations

HOST = "HostComputed"
_FIRST_SEED = 0
_OF_FIRST = 0.5
"""What a look takes of the time of the first pass, which watches lines of kernels and loads what it needs."""
_MOST_CASES = 100_000


class Run:
    """One verification, which began then (`time.monotonic`)."""

    def __init__(
        self, project: Project, request: Request, progress: Callable[[Case], None] | None, begun: float, policy: Policy | None
    ) -> None:
        self.project, self.request, self.progress, self.started, self.policy = project, request, progress, begun, policy
        self.cases: list[Case] = []
        self.total: int | None = None
        self.seeds = [_FIRST_SEED, *(secrets.randbelow(2**31) for _ in range(max(0, request.seeds - 1)))]
        self.place: Place | None = None
        self.desk: JudgeDevice  # of `place`
        self.hashes: dict[str, str] = {}
        self.history = History()
        self.beside = Beside(project.impl, request.static_policy)
        self.unlaunched: list[str] = []  # what to say of kernels that forward names and no case reached
        self.calls: list[int] = []  # the seeds of passes and looks, in their order
        self.orders: reordered.Reordered  # of `place`

    @property
    def on_gpu(self) -> bool:
        """Whether the implementation runs on an NVIDIA GPU."""
        return self.place is not None and self.place.target is Target.CUDA

    def everything(self, started: Started | PyptoOpError) -> None:
        """Run all passes in processes that have begun to load, or raise why they could not."""
        if isinstance(started, PyptoOpError):
            raise started
        self.hashes, self.place = started.hashes, started.place
        self.desk = JudgeDevice(self.place)
        self.orders = reordered.Reordered(self, started.task, started.ordered)
        with self._deadline(), contextlib.closing(self.orders):
            for number, seed in enumerate(self.seeds):
                if number == 1:
                    self._beside_looks(seed, started.task, started.candidate)
                else:
                    self._pass(number, seed, started.task, started.candidate)
            self._apply_doubts()
            self._replay(started.task, started.candidate.keys)
            if len(self.seeds) > 1:  # after the doubts: whose is dispelled meets the same passes as any other case
                passes = aside.Aside(self, started.task, started.candidate)
                passes.everything()
                self.orders.everything(passes.opened)
        started.close()
        with self._deadline():
            self._static()
        self._uncompiled()
        if self.project.hashes() != self.hashes:
            raise ContractError("a file changed while it was verified", file=self.project.folder, remedy="verify again")

    def _beside_looks(self, seed: int, task: TaskSession, candidate: CandidateSession) -> None:
        """Run the second pass at a random place among looks."""
        expected = _OF_FIRST * sum(case.alone for case in self.cases)
        with looking.Looks(self, task, candidate) as further:
            for turn in looks.turns(self.started, expected, lambda: further.spent):
                if turn is looks.Turn.JUDGED:
                    further.settle()
                    self._pass(1, seed, task, candidate)
                elif any(case.judgement.ok for case in self.cases):  # doubted ones too: a replay of few calls tells little
                    further.one(goes_on=turn is looks.Turn.LOOK_BEFORE_LOOK)

    def compared(self, case: Case, right: Judgement, made: Provenance, inputs: Any, judges: str) -> Judgement:
        """Note a run of a case, and whether its host handed launches other things than in the run before; return the verdict."""
        self.history.note(len(self.calls) - 1, case.index, made, inputs, judges)
        case.right = right
        case.doubt = case.doubt or _host_computed(case.made if len(self.calls) > 1 else None, made)
        case.made = made
        return case.doubt if case.doubt is not None and made.reads else right

    def _apply_doubts(self) -> None:
        """Refuse the cases whose numbers are right and whose host handed other things to launches."""
        for case in self.cases:
            if case.judgement.ok and case.doubt is not None:
                case.judgement = case.doubt
                if self.progress is not None:
                    self.progress(case)

    def _replay(self, task: TaskSession, keys: Sequence[int]) -> None:
        """Let those cases pass whose host gave other numbers because the pass was the second, and for nothing else."""
        doubted = {case.index for case in self.cases if case.judgement.error_type == HOST and not case.made.reads}
        if not doubted or self.place is None:
            return
        again = CandidateSession(self.project, self.place, self.request.limits(self.started), keys)
        try:
            reloads = {case.index for case in self.cases if case.reloads}
            honest = self.history.follows_from_calls(doubted, self.calls, task, again, lambda: self.tighten(task, again), reloads)
        finally:
            again.close()
        for case in (self.cases[index] for index in honest):
            case.judgement, case.doubt = case.right or case.judgement, None
            if self.progress is not None:
                self.progress(case)

    def _deadline(self) -> Deadline:
        return Deadline(self.started + self.request.timeout)

    def _static(self) -> None:
        """Let no case pass whose source computes outside kernels in a way that no run shows (NumPy in a kernel, say)."""
        launching = [case for case in self.cases if case.judgement.ok and case.launches]
        if not launching:
            return
        scalars = arguments.always_plain([case.scalars for case in launching])
        reading = self.beside.reading(scalars)
        message = agreement.objection(reading, [case.ran for case in launching])
        if message is None:
            self.unlaunched = agreement.unlaunched(reading, [case.kernels for case in launching])
            return
        for case in launching:
            case.judgement = Judgement("Degenerate", message, case.judgement.metrics)
            if self.progress is not None:
                self.progress(case)

    def _uncompiled(self) -> None:
        """Let no case pass with a kernel that no compiler takes; what else is wrong with a file is said first."""
        for case in [case for case in self.cases if case.judgement.ok and case.uncompiled]:
            case.judgement = Judgement("CompilationError", case.uncompiled, case.judgement.metrics)
            if self.progress is not None:
                self.progress(case)

    def _pass(self, number: int, seed: int, task: TaskSession, candidate: CandidateSession) -> None:
        self.tighten(task, candidate)
        total = task.open(seed)
        self.calls.append(seed)
        if number == 0:
            self.total = total
        index = 0
        while index < (total if total is not None else _MOST_CASES):
            self.tighten(task, candidate)
            if number and index >= len(self.cases):
                break
            if not self._case(index, number, seed, task, candidate):
                break
            index += 1
        if number == 0 and total is None:
            self.total = len(self.cases)

    def tighten(self, *sessions: TaskSession | CandidateSession) -> None:
        """Give processes what is left of the time; raise TimeIsUp where nothing is."""
        if time.monotonic() - self.started >= self.request.timeout:
            raise TimeIsUp
        for session in sessions:
            session.limits = self.request.limits(self.started)

    def _case(self, index: int, number: int, seed: int, task: TaskSession, candidate: CandidateSession) -> bool:
        """Run one case in one pass; False when there is none of that index."""
        case = self.cases[index] if number else Case(index)
        begin = time.monotonic()
        try:
            found = task.case(index, seed, used=bool(number), move=skewed.UP if number else "", reloads=case.reloads)
        except Told as told:
            self.keep(case, number, Judgement(_of_reference(told), f"the reference failed: {told.message}"), begin)
            self.tighten(task)
            task.open(seed)  # after a loss the task's process is a new one and stands before the first case
            return True
        if found is None:
            return False
        given, reference = found
        case.input_desc = case.input_desc or describe(given["inputs"])
        case.scalars = arguments.plain_ones(given["inputs"])
        self.beside.begin(case.scalars)
        if not case.judgement.ok:  # it failed in an earlier pass
            return True
        self.tighten(candidate)
        if not number:
            self.orders.begin(case, given, reference, seed)
        try:
            judges = configurations.judged_by(reference.get("skewed"))
            answer, run, facts = candidate.run(given, seed, later=bool(number), judges=judges)
        except Told as told:
            self.keep(case, number, Judgement(told.error_type, told.message), begin)
            return True
        judgement = self.desk.of_case(
            given, answer, lambda want, got: self._judged(case, want, reference, (got, run, facts), seed, task)
        )
        case.outputs = trivial.sampled(given["outputs"])
        made = Provenance.of(facts, numbers_of([given["inputs"], given["init"]]))
        case.launches, case.alone = run.launches, case.alone or float(facts.get("seconds", 0.0))
        if judgement.ok:
            judgement = self.compared(case, judgement, made, given["inputs"], judges)
        elif judgement.error_type in ("PrecisionError", "ValueMismatch"):
            judgement = _with_causes(judgement, reference, facts, spoilt=self.on_gpu)
        _note(case, number == 0, reference, facts)
        self.keep(case, number, judgement, begin)
        return True

    def _judged(
        self, case: Case, given: dict[str, Any], reference: dict[str, Any], found: Answered, seed: int, task: TaskSession
    ) -> Judgement:
        """Return the verdict on what the candidate answered (`CandidateSession.run`)."""
        judgement = self.numbers(given, reference, found, seed, task)
        if judgement.ok:
            judgement = self._trivial(case, given, found[0]["outputs"], seed, task, judgement)
        if judgement.ok and not case.outputs and reference.get("small") and not given["mutated"] and self.request.policy is None:
            truth = self._truth(task, seed)
            for places in small.apart(reference["small"]):
                without = task.without_small(seed, places)
                if without is not None:
                    wrong = small.judged(places, given["outputs"], found[0]["outputs"], without, truth)
                    if not wrong.ok:
                        return replace(wrong, metrics=judgement.metrics)
        return judgement

    def numbers(
        self,
        given: dict[str, Any],
        reference: dict[str, Any],
        found: Answered,
        seed: int,
        task: TaskSession,
        *,
        ties: bool = True,
    ) -> Judgement:
        """Return whether what the candidate answered is right, and came from a kernel; `ties` may fall on either side."""
        assert self.policy is not None
        answer, run, facts = found
        answer = {**answer, "outputs": equals.settled(given["outputs"], answer["outputs"], given.get("orders", ()))}
        judgement = judge(given, reference, answer, run, facts, self.policy)
        if judgement.error_type == "PrecisionError" and self.request.policy is None and not given["mutated"]:
            self.tighten(task)
            otherwise = task.otherwise(seed) if ties else replace(task.otherwise(seed), ties=lambda: None)
            judgement = second_look(judgement, given["outputs"], answer["outputs"], otherwise)
        return judgement

    def _truth(self, task: TaskSession, seed: int) -> Any:
        self.tighten(task)
        return task.otherwise(seed).truth()

    def _trivial(
        self, case: Case, given: dict[str, Any], answer: Any, seed: int, task: TaskSession, found: Judgement
    ) -> Judgement:
        """Return the verdict on right outputs after asking whether a trivial answer would be right too."""
        assert self.policy is not None
        passing = trivial.passing(given["outputs"], given["inputs"], case.outputs, self.policy)
        if not passing:
            return self._remote(case, given, answer, seed, task, found)
        if self.request.policy is not None:  # a named policy is applied alone
            case.caveats = trivial.told(passing)
            return found
        wrong, case.caveats = trivial.judged(passing, given["outputs"], answer, self._truth(task, seed))
        return found if wrong is None else Judgement(wrong.error_type, wrong.message, found.metrics)

    def _remote(
        self, case: Case, given: dict[str, Any], answer: Any, seed: int, task: TaskSession, found: Judgement
    ) -> Judgement:
        """Return the verdict after asking, in the first pass, whether the task tells what elements far away add."""
        shapes = remote.shapes_of(given["inputs"], given["outputs"]) if not case.outputs and not given["mutated"] else []
        if not shapes or self.policy is None:
            return found
        self.tighten(task)
        others = task.exchanged(shapes, seed)
        if others is None:
            return found
        wrong, case.unseen = remote.judged(shapes, given["outputs"], answer, others, self.policy, lambda: self._truth(task, seed))
        if wrong is None or self.request.policy is not None:  # a named policy is applied alone
            return found
        return Judgement(wrong.error_type, wrong.message, found.metrics)

    def keep(self, case: Case, number: int, judgement: Judgement, begin: float) -> None:
        """Take a pass's verdict on a case, which began then."""
        case.judgement = judgement
        case.seconds += time.monotonic() - begin
        if number == 0:
            self.cases.append(case)
        if self.progress is not None:
            self.progress(case)
        if judgement.error_type == "Timeout" and time.monotonic() - self.started >= self.request.timeout:
            raise TimeIsUp

    def mark_rest(self, error_type: str, message: str) -> None:
        """Count every case that did not run, or not in every pass, as failed."""
        for index in range(len(self.cases), self.total if self.total is not None else len(self.cases) + 1):
            self.cases.append(Case(index, judgement=Judgement(error_type, message)))
        if self.cases and all(case.judgement.ok for case in self.cases):
            self.cases[-1].judgement = Judgement(error_type, message)

    def status(self) -> str:
        """Return PASS when every case is right and there is at least one."""
        passed = sum(case.judgement.ok for case in self.cases)
        return "PASS" if self.cases and passed == self.total == len(self.cases) else "FAIL"


def _with_causes(judgement: Judgement, reference: dict[str, Any], facts: dict[str, Any], *, spoilt: bool) -> Judgement:
    """Return the verdict on wrong numbers, with what was moved before that call; `spoilt`: NaN lies around tensors (`beyond`)."""
    causes = [skewed.TOLD[skewed.UP]] if reference.get("skewed") else []
    causes += [edges.TOLD] if reference.get("edged") else []
    causes += [reloaded.TOLD] if reference.get("reloaded") else []
    causes += [f"{name}: {configurations.TOLD}" for name in facts.get("tried", ())]
    causes += aside.own_weights(list(map(str, facts.get("untaken", ()))))
    causes += [beyond.TOLD] if spoilt and "NaN" in judgement.message else []
    return replace(judgement, message="\n".join([judgement.message, *causes]))


def _note(case: Case, first: bool, reference: dict[str, Any], facts: dict[str, Any]) -> None:
    """Keep what a call told about the case beside its numbers: kernels, weights, what later passes may move, and caveats."""
    case.took(facts)
    case.idle = list(reference.get("idle", ()))
    case.one_value = case.one_value or bool(reference.get("one_value") or reference.get("same_inputs"))
    if first:
        case.begins(reference, facts)
        case.said = [*filter(None, [reference.get("one_sign")]), *aside.untested([*case.filled, *case.buffers], case.untaken)]
        case.said += aside.left_alone(list(map(str, facts.get("left", ()))))
    elif more := case.more_filled(reference):
        case.said += aside.untested(more, case.untaken)
    case.weights = str(facts.get("weights", "none"))
    case.kernels = sorted({*case.kernels, *map(str, facts.get("kernels", ()))})


def _host_computed(first: Provenance | None, now: Provenance) -> Judgement | None:
    """Return why an output may have been computed outside the kernels; None when nothing says so."""
    if now.reads:
        return Judgement(HOST, f"forward reads values of a tensor outside a kernel: {', '.join(now.reads)}")
    parameter = None if first is None else now.differs_from(first)
    if parameter is None:
        return None
    return Judgement(HOST, f"{parameter}: it depends on the inputs' values and comes from no kernel")


def _of_reference(told: Told) -> str:
    return "Timeout" if told.error_type == "Timeout" else "ReferenceFailed"
