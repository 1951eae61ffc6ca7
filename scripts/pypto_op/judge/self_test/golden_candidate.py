"""The golden in the candidate's place: a case that refuses it, in an honest order of addition, would refuse a right kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pypto_op.backends.base import RunResult
from pypto_op.judge.answers.expectation import Expectation, Reference
from pypto_op.judge.answers.verdict import judge_run
from pypto_op.judge.cases.natural import NATURAL
from pypto_op.judge.findings.records import TrialVerdict
from pypto_op.judge.findings.redaction import Redactor
from pypto_op.twins.reordering import GOLDEN, HONEST, OTHER_FORM, OTHER_TIES
from pypto_op.vocabulary import Outcome, Status

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Refusal:
    """An honest order of the golden that a case refuses."""

    sentence: str  # which one, and why
    of_whole_numbers: bool  # an output of whole numbers differs, which no policy of rounding errors mends

    def remedy(self, case: Mapping[str, Any]) -> str:
        """Say what to do about the case."""
        if self.of_whole_numbers:
            return "draw inputs whose values lie further apart, or leave the case out: no tolerance is about whole numbers"
        if case.get("policy"):
            return "take the case's policy out where its tolerance is enough, or give it milder inputs"
        return f'give the case "policy": "{NATURAL.id}" in the place of atol and rtol'


_HOW = {GOLDEN: "", OTHER_FORM: ", by its other form", OTHER_TIES: ", taking the last of equal values first"}


def judged(outputs: Sequence[torch.Tensor], reference: Reference, expectation: Expectation, redactor: Redactor) -> TrialVerdict:
    """Return the judge's verdict on outputs, as if a kernel had written them.

    Whether a FAIL looks like rounding is not asked: nobody debugs the golden.

    Args:
        outputs: the golden's, in some order of addition or with a fault in them.
    """
    run = RunResult(Outcome.OK, outputs=list(outputs), launches=1, outputs_from_kernel=True)
    return judge_run(run, reference, replace(expectation, hints=False), seed=0, redactor=redactor, secrets=())


def verdicts(
    reordered: Callable[[str], RunResult],
    reference: Reference,
    expectation: Expectation,
    redactor: Redactor,
    orders: Sequence[str] = HONEST,
) -> Iterator[tuple[str, TrialVerdict]]:
    """Yield the judge's verdict on each honest order of the golden, by name.

    An order in which the golden does not end is left out: the twin policies tell that themselves. So is a form that it has not.

    Args:
        reordered: runs the golden as a twin, by name.
        orders: only these.
    """
    for name in orders:
        run = reference.native if name == GOLDEN else reference.twins.get(name) or reordered(name)
        absent = name == OTHER_FORM and run.outputs is reference.native.outputs
        if run.outcome is Outcome.OK and not absent:
            yield name, judged(run.outputs, reference, expectation, redactor)


def refused(told: Iterable[tuple[str, TrialVerdict]], reference: Reference, expectation: Expectation) -> Refusal | None:
    """Return the first honest order of the golden that a case refuses, of what `verdicts` told; None where it takes each."""
    native = reference.native.outputs
    for name, verdict in told:
        if verdict.status is not Status.PASS:
            named = zip(expectation.names, native, strict=True)
            whole = any(not leaf.is_floating_point() for own, leaf in named if own in verdict.bad_outputs)
            how = _HOW.get(name, f", adding up as {name}")
            return Refusal(f"the golden itself{how}, is refused: {verdict.summary}", whole)
    return None
