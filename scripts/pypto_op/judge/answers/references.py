"""What a case is compared with: its inputs, the golden's answer, the golden's twins, the golden's inspection probe."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from pypto_op.backends.answers import Answers
from pypto_op.backends.base import RunResult
from pypto_op.backends.reference import ReferenceSession
from pypto_op.errors import ContractError
from pypto_op.judge.answers import last_bits
from pypto_op.judge.answers.expectation import Expectation, Reference, ways_of
from pypto_op.judge.cases import inspection
from pypto_op.judge.cases.calling import positions
from pypto_op.judge.cases.inputs import checks_precision, stress_of
from pypto_op.judge.cases.natural import MEASURED, MOST, share_taken
from pypto_op.twins.reordering import GOLDEN
from pypto_op.vocabulary import Outcome

if TYPE_CHECKING:
    import torch

    from pypto_op.backends.base import Value
    from pypto_op.judge.answers.plan import Plan

_LOSSES = frozenset({Outcome.TIMED_OUT, Outcome.CRASHED, Outcome.OUT_OF_MEMORY})
_NEARLY = 0.95


class ReferenceLoss:
    """Whether a reference was lost; shared by all workers, since one that never ends would cost each case a time-out."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sentence = ""

    @property
    def sentence(self) -> str:
        """How it was lost; "" as long as it was not."""
        with self._lock:
            return self._sentence

    def note(self, sentence: str) -> None:
        """Remember the first loss."""
        with self._lock:
            self._sentence = self._sentence or sentence


def answered(golden: Callable[..., RunResult], expectation: Expectation, native: RunResult | None = None) -> Reference:
    """Return a golden's answer, and what it says in float64 and as its honest twins where the tolerance wants them.

    Args:
        golden: runs it on the inputs of the case; takes `float64` and `twin` as `ReferenceSession.golden`.
        native: what it answers as it stands; None: it is run.
    """
    native = native or golden()
    wanted = expectation.twins() if expectation.precision else ()
    if native.outcome is not Outcome.OK:
        return Reference(native)
    if not wanted:
        return Reference(
            native, ways=cache(lambda: ways_of(golden(float64=True))), reordered=cache(lambda name: golden(twin=name))
        )
    exact = golden(float64=True)
    if expectation.either and (reference := _by_tolerance(golden, expectation, native, exact)) is not None:
        return reference
    twins = {GOLDEN: native}
    for name in wanted:
        if name not in twins:
            twins[name] = golden(twin=name)
    behind, share = expectation.behind, 0.0
    if behind is not None and not behind.needs_twins:
        share = share_taken([exact, *(run for name, run in twins.items() if name != GOLDEN)], native, behind)
    # Behind a named policy stands a tolerance, and its comparison is with the golden as it stands.
    return Reference(native, exact, twins, natural_share=share, ways=lambda: ways_of(exact))


def _by_tolerance(
    golden: Callable[..., RunResult], expectation: Expectation, native: RunResult, exact: RunResult
) -> Reference | None:
    """Return the answer of a drawn case that the tolerance decides; None where honest rounding takes too much of it."""
    if not all(bool(output.isfinite().all()) for output in native.outputs if output.is_floating_point()):
        return Reference(native, unfit="it is not finite there")
    if expectation.behind is None or expectation.behind.needs_twins:
        return None
    share = share_taken([exact, *(golden(twin=name) for name in MEASURED)], native, expectation.behind)
    if math.isinf(share):
        return Reference(native, unfit="other orders of summation are not finite at the same places")
    return Reference(native, natural_share=share, ways=lambda: ways_of(exact)) if share <= MOST else None


class References:
    """The reference processes of one plan, used for case after case: a module golden runs alone, without the inputs' file."""

    def __init__(self, plan: Plan, loss: ReferenceLoss) -> None:
        self._plan, self._loss = plan, loss
        self._session = self._goldens = ReferenceSession(plan.subject.workspace, limits=plan.limits)
        if plan.subject.phase is not None:
            self._goldens = ReferenceSession(plan.subject.workspace, limits=plan.limits, alone=plan.subject.golden)
        subject, used = plan.subject, plan.input_names if plan.used_inputs is None else plan.used_inputs
        function = subject.golden_function if plan.probe is None else plan.probe.function
        self._taken = positions(subject.golden, function, plan.input_names, used)
        self._answers = Answers(self._goldens, function=subject.golden_function, file=subject.golden)

    def close(self) -> None:
        """End the processes; harmless when called twice."""
        self.note_loaded()
        self._session.close()
        self._goldens.close()

    def note_loaded(self) -> None:
        """Let the plan know what the processes have loaded so far."""
        for session in (self._session, self._goldens):
            self._plan.loaded.note_all(session.loaded())

    def inputs(self, case: Mapping[str, Any]) -> list[Value]:
        """Return the primary inputs of a case, in order.

        Raises:
            ContractError: eval/test_inputs.py does not make them, or makes others than the contract names.
        """
        started = time.monotonic()
        try:
            made = self._session.make_inputs(dict(case))
        except ContractError:
            if time.monotonic() - started >= _NEARLY * self._plan.limits.case_seconds:
                self._loss.note("eval/test_inputs.py does not end")
            raise
        self._plan.check_inputs(case, made)
        return [value for _, value in made]

    def answer(self, inputs: Sequence[Value], expectation: Expectation) -> Reference:
        """Return the golden's answer, and its twins' where the tolerance wants them."""
        native = self._noted(self.golden(inputs))
        # Alone first: of a golden that never ends, one time-out is enough.
        if native.outcome is Outcome.OK and expectation.precision and (twins := expectation.twins()):
            wanted: list[dict[str, Any]] = [{"float64": True}, *({"twin": name} for name in twins if name != GOLDEN)]
            self._answers.prepare(self._handed(inputs), wanted)
        reference = answered(lambda **how: self._noted(self.golden(inputs, **how)), expectation, native)
        return replace(reference, moved=cache(lambda: last_bits.answers(self.golden, inputs)))

    def probe(self, inputs: Sequence[Value]) -> RunResult:
        """Return what the golden says of the plan's inspection probe: one tensor.

        Raises:
            ContractError: it says nothing that could be compared.
        """
        probe, file = self._plan.probe, self._plan.subject.golden
        assert probe is not None
        result = self._goldens.golden(self._handed(inputs), function=probe.function, file=file, probe=probe.name)
        self._noted(result)
        fault = inspection.fault_of(result, probe)
        if fault:
            raise ContractError(
                fault, file=file, remedy=f"define {probe.function}(*primary_inputs) -> {{{probe.name!r}: tensor}}"
            )
        return result

    def condition(self, inputs: Sequence[Value], case: Mapping[str, Any]) -> float | None:
        """Return how badly the golden's sums cancel on these inputs, where the case wants them to; None where not.

        A golden that fails here has failed in `answer` too, and is told there.
        """
        wanted, subject = stress_of(case), self._plan.subject
        if wanted is None or not checks_precision(case):
            return None
        try:
            told = self._goldens.conditions(
                self._handed(inputs),
                function=subject.golden_function,
                file=subject.golden,
                expression=wanted.expression,
                quantile=wanted.quantile,
            )
        except ContractError:
            return None
        return float(told["reached"])

    def unread(self, inputs: Sequence[Value]) -> list[torch.Tensor]:
        """Return, per primary input, a mask of the elements that the golden seems not to read; [] where nobody can tell."""
        handed, subject = self._handed(inputs), self._plan.subject
        masks = self._goldens.unread(handed, function=subject.golden_function, file=subject.golden)
        if len(masks) != len(handed) or len(handed) == len(inputs):
            return masks if len(masks) == len(inputs) else []
        import torch

        known = dict(zip(self._taken, masks, strict=True))
        return [known.get(place, torch.zeros(0, dtype=torch.bool)) for place in range(len(inputs))]

    def golden(self, inputs: Sequence[Value], **how: Any) -> RunResult:
        """Return one answer of the golden, on any inputs; see `ReferenceSession.golden` for `how`. Kept by content."""
        return self._answers.ask(self._handed(inputs), **how)

    def _handed(self, inputs: Sequence[Value]) -> list[Value]:
        return [inputs[i] for i in self._taken] if len(inputs) == len(self._plan.input_names) else list(inputs)

    def _noted(self, result: RunResult) -> RunResult:
        if result.outcome in _LOSSES:
            self._loss.note(f"it ended with: {result.outcome}")
        return result
