"""Was a wrong answer computed from an earlier call's inputs? Only runs that fail by their numbers are asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pypto_op.backends.base import RunResult
from pypto_op.compare import compare_leaves
from pypto_op.documents.policy import Policy, dtype_word, get_policy
from pypto_op.judge.answers.expectation import Expectation, Reference
from pypto_op.judge.answers.references import References
from pypto_op.judge.answers.verdict import failed_for
from pypto_op.judge.cases.inputs import digest, tensors_in
from pypto_op.judge.findings.reasons import Reason
from pypto_op.judge.findings.records import TrialVerdict
from pypto_op.vocabulary import Outcome, Status

if TYPE_CHECKING:
    import torch

    from pypto_op.backends.base import Value

_MOST_ELEMENTS = 2**22
"""Larger inputs are not remembered."""

_NUMBERS = frozenset({Reason.MISMATCH, Reason.NON_FINITE, Reason.SHAPE})


@dataclass(frozen=True)
class Answered:
    """Inputs that a wrapper was called with, and what the golden says."""

    case: Mapping[str, Any]  # of the suite
    seed: int  # of the inputs
    inputs: Sequence[Value]  # every primary input
    reference: Reference  # the golden's answer
    expectation: Expectation  # what the case wants


class Staleness:
    """Remembers, for inputs of each shape, what was asked first and last.

    Args:
        references: answer for mixtures of old and new inputs.
    """

    def __init__(self, references: References, input_names: Sequence[str]) -> None:
        self._references, self._names = references, input_names
        self._known: dict[str, list[Answered]] = {}

    def note(self, answered: Answered) -> None:
        """Remember a call that was made."""
        if sum(tensor.numel() for tensor in tensors_in(answered.inputs)) > _MOST_ELEMENTS:
            return
        known = self._known.setdefault(_form(answered.inputs), [])
        known[1:] = [replace(answered, reference=Reference(answered.reference.native))]

    def explained(self, verdict: TrialVerdict, run: RunResult, now: Answered) -> TrialVerdict:
        """Return the verdict, as STALE_RESULT where the outputs are right for something that an earlier call was given.

        Args:
            verdict: on `run`.
            run: a call with the inputs of `now`.
            now: what was asked; the calls before it are those that `note` was told of.
        """
        if verdict.status is not Status.FAIL or not verdict.reasons or verdict.reasons[0] not in _NUMBERS:
            return verdict
        for before in self._known.get(_form(now.inputs), []):
            for what, answer in self._mixtures(now, before):
                if self._fits(run, answer, now):
                    return replace(failed_for(Reason.STALE_RESULT, verdict, what), near_miss=False)
        return verdict

    def _mixtures(self, now: Answered, before: Answered) -> Iterator[tuple[str, RunResult]]:
        """Yield what the golden gives for the old inputs, and for new ones with one old one among them, in words."""
        changed = [
            i for i, pair in enumerate(zip(before.inputs, now.inputs, strict=True)) if digest([pair[0]]) != digest([pair[1]])
        ]
        if not changed:
            return
        if len(changed) > 1:
            yield "it is the answer to the inputs of an earlier call, which the wrapper keeps", before.reference.native
        for i in changed:
            mixed = [*now.inputs[:i], before.inputs[i], *now.inputs[i + 1 :]]
            name, is_scalar = self._name(i), not tensors_in([now.inputs[i]])
            # A number by heart, a scalar that nobody reads and one that a kernel was built with look the same from here.
            why = f"the kernel does not read {name}, or keeps the first one" if is_scalar else "it is kept between calls"
            yield f"{name} is that of an earlier call: {why}", self._references.golden(mixed)

    def _name(self, i: int) -> str:
        return self._names[i] if i < len(self._names) else f"input {i + 1}"

    def _fits(self, run: RunResult, old: RunResult, now: Answered) -> bool:
        """Whether outputs agree with an old answer that is not the new one as well."""
        if old.outcome is not Outcome.OK or len(old.outputs) != len(run.outputs):
            return False
        fresh = now.reference.native.outputs
        return agree(run.outputs, old.outputs, now.expectation) and not agree(fresh, old.outputs, now.expectation)


def agree(actual: Sequence[torch.Tensor], expected: Sequence[torch.Tensor], expectation: Expectation) -> bool:
    """Whether outputs agree within a tolerance that needs no twins."""
    if len(actual) != len(expected):
        return False
    return all(
        compare_leaves([one], [other], names=["it"], policy=plain(expectation, other)).all_close
        for one, other in zip(actual, expected, strict=True)
    )


def plain(expectation: Expectation, expected: torch.Tensor) -> Policy:
    """Return the tolerance of a case for one output; where its own needs twins, the usual one, whose atol follows the numbers.

    Such a case may be one of small numbers, all of which lie below the usual atol: zeros would be right there.
    """
    if not expectation.policy.needs_twins:
        return expectation.policy
    usual = get_policy("allclose@1")
    numbers = expected[expected.isfinite()].double().abs() if expected.is_floating_point() else expected[:0]
    if not numbers.numel():
        return usual
    word = dtype_word(str(expected.dtype))
    own = usual.for_dtype(word)
    atol = min(own["atol"], own["rtol"] * float(numbers.max()))
    return get_policy({**usual.as_dict(), "per_dtype": {word: {**own, "atol": atol}}})


def _form(inputs: Sequence[Value]) -> str:
    """Return the shapes and dtypes of inputs as text; of numbers, the type."""
    return repr([_form_of(value) for value in inputs])


def _form_of(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_form_of(item) for item in value]
    shape = getattr(value, "shape", None)
    return type(value).__name__ if shape is None else (str(value.dtype), tuple(shape))
