"""Judges cases that are right so far once more, on moved inputs and on weights as training leaves them.

Each is one call of a new model, judged by its numbers and by where they come from. What such inputs cannot refuse, because the
task or the implementation does not let them, is said.
"""

from __future__ import annotations

import contextlib
import functools
import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pypto_op.triton.run import ignored, reordered
from pypto_op.triton.run.ahead import Ahead
from pypto_op.triton.run.case import Case
from pypto_op.triton.run.inputs import (
    before,
    circumstances,
    filled,
    idle,
    masks,
    neighbours,
    one_value,
    reaching,
    skewed,
    stretched,
    unread,
)
from pypto_op.triton.run.interpreter import products
from pypto_op.triton.run.judging import coarse, natural
from pypto_op.triton.run.judging.judgement import Judgement, is_of_larger
from pypto_op.triton.run.moves import Step, Steps, taken
from pypto_op.triton.run.processes.sessions import CandidateSession, TaskSession, Told
from pypto_op.triton.run.verification import ReferenceFailed, asked
from pypto_op.triton.run.watching import configurations, orders

if TYPE_CHECKING:
    from pypto_op.triton.run.verification import Verification

_NUMBERS = ("PrecisionError", "ValueMismatch")
_TOLD = {**skewed.TOLD, one_value.OTHER: one_value.TOLD, masks.MOVE: masks.TOLD, unread.MOVE: unread.TOLD}
_TOLD |= {reaching.REACH: reaching.TOLD, reaching.WITHIN: reaching.TOLD_WITHIN, reaching.MEET: reaching.TOLD_MET}
_TOLD |= {reaching.CODES: reaching.TOLD_CODES, reaching.EXACT: reaching.TOLD_EXACT, stretched.MOVE: stretched.TOLD}
_TOLD |= {stretched.BELOW: stretched.WHAT_BELOW}
_AFTER = {**neighbours.TOLD, before.KEPT: before.TOLD}
"""By the name of a pass, what is said of the calls before the one that it judges."""
_MOST_NAMES = 4
_TUNING_SECONDS = 3.0
"""What calls for configurations that no other call took may take, on inputs of either kind; `caveats` names those left."""
_UNFILLED = (
    "with other values in lanes that a mask turns off and no `other` fills, which Triton leaves undefined, the answer is wrong"
)
_BROKEN = "the reference failed when its inputs were moved ({}), so {}"
_THAT, _LATER = "nothing was judged on these", "later passes with other inputs were not made"
_MOST_LOSSES = 3
"""So often the task's process may die on moved inputs; on a GPU a new one takes some seconds."""
_ELSEWHERE = (
    "with gradients on, and inputs that begin elsewhere in memory, the implementation ends in {}; it was judged without gradients"
)
_CONSTRUCTED = (
    "where weights are loaded after its constructor ran, the implementation is wrong: what the constructor made of the weights "
    "that it drew does not follow"
)


_BY_HEART = (
    "the reference's constants {} are the same for every seed, and the implementation has none, or is wrong with other values: "
    "it may know them by heart"
)


class Aside:
    """The passes aside of one verification."""

    def __init__(self, run: Verification, task: TaskSession, candidate: CandidateSession) -> None:
        self._run, self._task, self._candidate = run, task, candidate
        self._steps = Steps(run.cases, run.seeds[0])
        self._losses = 0  # times that the reference failed on moved inputs

    def everything(self) -> None:
        """Run them all; a case that is wrong in one of them fails."""
        with Ahead(self._run, self._task, self._steps.after) as ahead:
            step = self._steps.first()
            while step is not None:
                try:
                    self._case(step, ahead)
                except ReferenceFailed:  # where it really fails, a main pass says so
                    ahead.forget()
                    if not self._goes_on(step):
                        return
                step = self._steps.after(step)
        for case in self._run.cases:
            case.said += idle.told(case.idle)
        self._buffers()
        self._constants()
        after = [functools.partial(self._after_others, what) for what in _AFTER]
        self._while_reference_answers(*after)
        numbers = ignored.Ignored(self._run, self._task, self._candidate, self.opened)
        numbers.of_forward()
        numbers.of_constructor()
        far = functools.partial(self._configurations, skewed.FAR)
        self._while_reference_answers(self._configurations, far, self._rounded, self._elsewhere, self._built_otherwise)
        self._while_reference_answers(self._backward)

    def _goes_on(self, step: Step) -> bool:
        """Say that a step's inputs ended the reference, and let it see the passes' own again: its process may be a new one.

        What it searches for is searched for once more: a new process leaves out the way that ended the last one (`deadly`).
        """
        self._losses += 1
        step.case.lost |= {step.move} - {reaching.REACH, reaching.MEET}
        with contextlib.suppress(ReferenceFailed):
            if self._losses <= _MOST_LOSSES:
                for seed in self._run.seeds:
                    for case, _ in self.opened(lambda case: True, seed):
                        asked(self._task, case, seed)
                said = _BROKEN.format(step.move, _THAT)
                step.case.said += [] if said in step.case.said else [said]
                return True
        for case in self._run.cases:
            case.said.append(_BROKEN.format(step.move, _LATER))
        return False

    def _while_reference_answers(self, *passes: Callable[[], None]) -> None:
        """Run passes, each up to the case in which the reference fails; where it really fails, a main pass says so."""
        for one in passes:
            with contextlib.suppress(ReferenceFailed):
                one()

    def opened(self, wanted: Callable[[Case], bool], seed: int | None = None) -> Iterator[tuple[Case, int]]:
        """Yield the cases that are right so far and wanted, and the seed of a pass over them; inputs are drawn for such alone."""
        seed = secrets.randbelow(2**31) if seed is None else seed
        begun = False
        for case in self._run.cases:
            if case.judgement.ok and case.doubt is None and wanted(case):
                if not begun:
                    self._run.tighten(self._task)
                    self._task.open(seed)
                begun = True
                yield case, seed

    def _buffers(self) -> None:
        """Judge one more call where buffers hold other values, where the reference takes that."""
        for case, seed in self.opened(lambda case: bool(_varying(case))):
            names, begin = _varying(case), time.monotonic()
            judgement = self._varied(case, names, seed)
            if judgement is None:
                case.said.append(f"buffers {_listed(names)} of the reference: it takes no other values, so none were tested")
                continue
            if not judgement.ok and case.derived:
                case.said.append(_told_of_first(names))
            elif not judgement.ok:
                self._run.keep(case, 1, judgement, begin)

    def _constants(self) -> None:
        """Call once more where constants of the reference hold other values; what is wrong then is said."""
        for case, seed in self.opened(lambda case: bool(case.constants)):
            wrong, names = [name for name in case.constants if name in case.untaken], taken(case, case.constants)
            judgement = self._varied(case, names, seed) if names else None
            wrong += names if judgement is not None and not judgement.ok else []
            case.said += [_BY_HEART.format(_listed(wrong))] if wrong else []

    def _varied(self, case: Case, names: list[str], seed: int) -> Judgement | None:
        """Return the verdict on one call where these weights hold other values; None where the reference takes none."""
        self._run.tighten(self._task, self._candidate)
        try:
            found = self._task.case(case.index, seed, vary=names)
        except Told:
            found = None
        if found is None or not found[1].get("suits"):
            self._task.open(seed)
            return None
        return self._answered(case, *found, seed)

    def _after_others(self, what: str) -> None:
        """Judge the call after one on other inputs, or after several (`_AFTER`), where the reference takes that."""
        if not all(case.judgement.ok for case in self._run.cases):
            return  # what fails in one case would fail before another, too
        several = len(self._run.cases) > 1
        wanted = {neighbours.SHAPES: lambda case: several, neighbours.DRAWN: lambda case: case.redrawn}
        for case, seed in self.opened(wanted.get(what, lambda case: case.keeps)):
            begin = time.monotonic()
            self._run.tighten(self._task, self._candidate)
            found = asked(self._task, case, seed, used=True, after=what)
            judgement = Judgement() if found[1].get("same") else self._answered(case, *found, seed)
            if not judgement.ok:
                self._run.keep(case, 1, replace(judgement, message=f"{judgement.message}\n{_AFTER[what]}"), begin)

    def _configurations(self, move: str = "") -> None:
        """Judge calls that take configurations of autotuned kernels which no judged call took, while there is time.

        `move`: of the inputs, none or `FAR`, where a configuration has to be right, too.
        """
        spent = took = 0.0
        idle = 0  # calls in a row that took what earlier ones had taken
        left = Case.unjudged_far if move else Case.unjudged
        for case, seed in self.opened(lambda case: bool(left(case))):
            self._run.tighten(self._task, self._candidate)
            found = asked(self._task, case, seed, move=move)
            if found[1].get("same"):  # the reference takes no such inputs
                continue
            while case.judgement.ok and left(case) and spent + took <= _TUNING_SECONDS:
                begin, before = time.monotonic(), case.configurations
                judgement = self._answered(case, *found, seed, turns=True)
                if not judgement.ok:
                    told = "a configuration that earlier calls did not take"
                    self._run.keep(case, 1, replace(judgement, message=f"{judgement.message}\n{told}"), begin)
                took = time.monotonic() - begin
                spent += took
                idle = idle + 1 if case.configurations == before else 0
                if idle > 1:  # a kernel that this case does not launch
                    break

    def _rounded(self) -> None:
        """Judge one more call where products are those of a device that rounds their operands; what is wrong then is said."""
        for case, seed in self.opened(lambda case: case.products):
            self._run.tighten(self._task, self._candidate)
            found = asked(self._task, case, seed)
            if not self._answered(case, *found, seed, rounded=True).ok:
                case.said.append(products.WORDS)

    def _backward(self) -> None:
        """Judge one more call whose programs run from the last to the first, where they share memory by atomics."""
        for case, seed in self.opened(lambda case: case.atomics):
            begin = time.monotonic()
            self._run.tighten(self._task, self._candidate)
            judgement = self._answered(case, *asked(self._task, case, seed), seed, backward=True)
            if judgement.error_type in _NUMBERS:
                self._run.keep(case, 1, reordered.told(orders.DOWN, judgement), begin)

    def _elsewhere(self) -> None:
        """Judge one more call with gradients, inputs elsewhere in memory, where the file may ask for that (`circumstances`)."""
        if not circumstances.asks(self._run.project.own_files()):
            return
        for case, seed in self.opened(lambda case: True):
            begin = time.monotonic()
            self._run.tighten(self._task, self._candidate)
            found = asked(self._task, case, seed)
            judgement = self._answered(case, *found, seed, elsewhere=True)
            if judgement.error_type in (*_NUMBERS, "StructureMismatch"):
                self._run.keep(case, 1, replace(judgement, message=f"{judgement.message}\n{circumstances.TOLD}"), begin)
            elif not judgement.ok:
                case.said.append(_ELSEWHERE.format(judgement.error_type))

    def _built_otherwise(self) -> None:
        """Judge one more call of a model that drew other weights and then got the reference's; what is wrong then is said."""
        for case, seed in self.opened(lambda case: case.derived > 0 and case.weights == "by name" and not case.untaken):
            self._run.tighten(self._task, self._candidate)
            found = asked(self._task, case, seed)
            if not self._answered(case, *found, seed, built=seed + 1).ok:
                case.said.append(_CONSTRUCTED)

    def _case(self, step: Step, ahead: Ahead) -> None:
        begin, case = time.monotonic(), step.case
        found = self._judged(step, ahead)
        if not found.ok and ahead.failed():
            ahead.forget()
            found = self._judged(step, ahead, alone=True)
        if found.ok:
            return
        if step.vary not in ((), (filled.WEIGHTS,)) and case.derived and found.error_type in _NUMBERS:
            ahead.forget()
            if self._judged(replace(step, vary=()), ahead).ok:
                said = _told_of_first([*step.vary])
                case.said += [] if said in case.said else [said]
                return
        if step.move == stretched.BELOW and found.error_type in _NUMBERS:
            case.said.append(stretched.TOLD_BELOW)
            return
        self._run.keep(case, 1, found, begin)

    def _judged(self, step: Step, ahead: Ahead, *, alone: bool = False) -> Judgement:
        """Return the verdict on one call; that of the case where nothing is moved. `alone`: the next step is not asked for."""
        case, move, seed = step.case, step.move, step.seed
        self._run.tighten(self._task, self._candidate)
        given, reference = ahead.found(step)
        case.said += [line for line in reference.get("untested", ()) if line not in case.said]
        if reference.get("same"):
            case.reached = case.reached or move == reaching.REACH
            return case.judgement
        case.met = case.met or move == reaching.MEET
        case.idle = list(reference.get("idle", ()))
        if not alone:
            ahead.begin(step, given)
        marked = case.lanes and not case.marked
        judgement = self._answered(case, given, reference, seed, marked=marked)
        if marked:
            case.marked = True
            if not judgement.ok:
                judgement = self._answered(case, given, reference, seed)
                case.said += [_UNFILLED] if judgement.ok else []
        return judgement

    def _answered(
        self,
        case: Case,
        given: dict[str, Any],
        reference: dict[str, Any],
        seed: int,
        *,
        built: int = 0,
        **how: bool,
    ) -> Judgement:
        """Return the verdict on one call of a new model; `built` is a seed, `how` are arguments of `CandidateSession.run`."""
        try:
            moved = reference.get("skewed")
            exact = moved not in (skewed.FAR, reaching.REACH)
            judges = configurations.judged_by(moved) if exact or moved == skewed.FAR else ""
            answer, run, facts = self._candidate.run(given, built or seed, later=True, judges=judges, **how)
        except Told as told:
            return _told(Judgement(told.error_type, told.message), reference)
        case.took(facts)
        if facts.get("reads"):
            return Judgement("HostComputed", f"forward reads values of a tensor outside a kernel: {facts['reads'][0]}")

        def numbers(want: dict[str, Any], got: dict[str, Any]) -> Judgement:
            ties = moved not in reaching.EXACTLY
            found = self._run.numbers(want, reference, (got, run, facts), seed, self._task, ties=ties)
            if found.error_type == "ReferenceDoubtful":  # this draw shows nothing so moved, another one did
                return Judgement()
            if found.ok or found.error_type not in _NUMBERS:
                return found
            if exact and moved not in skewed.TOLD:
                return found
            truth, strict = self._task.otherwise(seed).truth(), bool(reference.get("picked"))
            if moved == skewed.HIGH and is_of_larger(want["outputs"], got["outputs"], truth, case.outputs):
                return Judgement(metrics=found.metrics)
            if exact and not natural.is_magnified(want["outputs"], truth):
                return found
            wrong = coarse.gross(want["outputs"], got["outputs"], truth, inputs=given["inputs"], strict=strict)
            return Judgement("PrecisionError", wrong) if wrong else Judgement()

        judgement = self._run.desk.of_case(given, answer, numbers)
        return judgement if judgement.ok else _told(judgement, reference)


def _varying(case: Case) -> list[str]:
    """Return the buffers that both models have, but constants: what a kernel knows by heart of those is said alone."""
    return [name for name in taken(case, case.buffers) if name not in case.constants]


def _told_of_first(names: list[str]) -> str:
    return (
        f"with other values for {_listed(names)} the implementation is wrong, and it holds tensors that its constructor may "
        "have made of the first ones; only these were tested"
    )


def untested(filled_weights: list[str], untaken: list[str]) -> list[str]:
    """Return what to say of weights that are the same for every seed and that the implementation does not have."""
    names = [name for name in filled_weights if name in untaken]
    words = f"{_listed(names)} of the reference are the same for every seed, and the implementation has no such weights"
    return [f"{words}: other values were not tested"] if names else []


def left_alone(names: list[str]) -> list[str]:
    """Return what to say of weights that the reference's forward changes and the implementation's does not."""
    words = f"forward of the reference changes {_listed(names)}, and the implementation's leaves it: outputs alone are compared"
    return [words] if names else []


def _told(judgement: Judgement, reference: dict[str, Any]) -> Judgement:
    lines = [judgement.message]
    if reference.get("skewed"):
        lines.append(_TOLD[reference["skewed"]])
    if reference.get("varied"):
        lines.append(f"{filled.TOLD}: {_listed(reference['varied'])}")
    return replace(judgement, message="\n".join(lines))


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more


def own_weights(untaken: list[str]) -> list[str]:
    """Return why numbers may be wrong where the implementation drew weights of its own: none of its parameters took these."""
    if not untaken:
        return []
    named = ", ".join(untaken[:4])
    return [f"the reference's {named} found no parameter of that name or shape: the constructor's own draws stand there"]
