"""Small changes of a case's inputs: two elements of a tensor, or one scalar.

A change counts only where it shows: the golden's answer moves by more than the tolerance, is finite where it was, and
honest rounding takes no more of the tolerance than before. So a kernel that is right passes on it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from pypto_op.errors import ContractError
from pypto_op.judge.answers.references import References
from pypto_op.judge.cases.natural import MOST, natural_share
from pypto_op.judge.running.staleness import Answered, agree
from pypto_op.vocabulary import Outcome

if TYPE_CHECKING:
    import torch

    from pypto_op.backends.base import RunResult, Value

_DRAWS = 32

_LEAST_SHARE = 1 / 16
"""Of a float scalar: of a share t near 0 an honest `a + t (b - a)` keeps no digits where a is large. The suite has cases of such
ends, with inputs that are made for them."""


@dataclass(frozen=True)
class Scalar:
    """One scalar input with another value."""

    answered: Answered  # the inputs with it, and the golden's answer
    value: bool | int | float  # the value
    guessed: bool  # no case of the suite has it, so a wrapper may refuse it

    @property
    def may_be_unfit(self) -> bool:
        """Whether the wrapper may have no use for the value although the golden has: a size that is no multiple of 8."""
        return self.guessed and type(self.value) is int


class Changes:
    """Makes changed inputs of one case.

    Args:
        seed: decides which elements change.
        check: raises ContractError for inputs that SPEC.md rules out, on which a right kernel may answer anything.
    """

    def __init__(self, base: Answered, references: References, seed: int, check: Callable[[Sequence[Value]], None]) -> None:
        import torch

        self._base, self._references, self._check = base, references, check
        self._generator = torch.Generator().manual_seed(seed)
        self._room = max(MOST, self._share(base.inputs, base.reference.native))

    def few_elements(self) -> Answered | None:
        """Return the inputs with two elements changed in the middle of each float tensor; None where that does not show.

        Two elements change places, so that sums, norms and extremes stay; where that does not show, one gets the value of
        the other.
        """
        inputs = list(self._base.inputs)
        for i, value in enumerate(self._base.inputs):
            for changed in self._variants(value):
                alone = [*self._base.inputs[:i], changed, *self._base.inputs[i + 1 :]]
                if self._visible(self._references.golden(alone)):
                    inputs[i] = changed
                    break
        moved = any(new is not old for new, old in zip(inputs, self._base.inputs, strict=True))
        return self._answered(inputs) if moved else None

    def scalar(self, place: int, known: Sequence[Value]) -> Iterator[Scalar]:
        """Yield the inputs with other values of the scalar input at `place`: those of other cases, then drawn ones.

        Args:
            place: the position of the input.
            known: its values in other cases.
        """
        old = self._base.inputs[place]
        assert isinstance(old, (bool, int, float))
        tried: list[Value] = [old]
        for value in (*known, *self._between(old, known), *self._guesses(old)):
            if type(value) is not type(old) or value in tried:
                continue
            if isinstance(old, float) and abs(value) < _LEAST_SHARE * abs(old):
                continue
            tried.append(value)
            inputs = [*self._base.inputs[:place], value, *self._base.inputs[place + 1 :]]
            answered = self._answered(inputs)
            if answered is not None:
                yield Scalar(answered, value, value not in known)

    def _between(self, old: bool | int | float, known: Sequence[Value]) -> list[float]:
        """Return a float between `old` and one of another case: the likeliest to be legal, and no kernel knows it by heart."""
        import torch

        other = next((value for value in known if isinstance(value, float) and value != old), None)
        if not isinstance(old, float) or other is None:
            return []
        share = 0.25 + 0.5 * float(torch.rand(1, generator=self._generator))
        return [old + share * (other - old)]

    def _guesses(self, old: bool | int | float) -> Sequence[bool | int | float]:
        """Return other values that may be legal, the likeliest first; floats are drawn, so that no kernel knows them."""
        import torch

        if isinstance(old, bool):
            return (not old,)
        if isinstance(old, int):
            return (2 * old, old // 2, old + 1, old - 1)
        drawn = 1.0 + round(float(torch.rand(1, generator=self._generator)), 3)
        return (2.0 * drawn * old, old / (2.0 * drawn), old + 0.25 * drawn, old + drawn)

    def _answered(self, inputs: Sequence[Value]) -> Answered | None:
        """Return the golden's answer, where the inputs are legal, it is another one and a right kernel must come near it."""
        try:
            self._check(inputs)
        except ContractError:
            return None
        native = self._references.golden(inputs)
        if not self._visible(native) or not finite(native) or self._share(inputs, native) > self._room:
            return None
        reference = self._references.answer(inputs, self._base.expectation)
        return replace(self._base, inputs=inputs, reference=reference) if reference.problem() is None else None

    def _visible(self, answer: RunResult) -> bool:
        base = self._base
        return answer.outcome is Outcome.OK and not agree(answer.outputs, base.reference.native.outputs, base.expectation)

    def _share(self, inputs: Sequence[Value], native: RunResult) -> float:
        expectation = self._base.expectation
        return natural_share(partial(self._references.golden, inputs), native, expectation.behind or expectation.policy)

    def _variants(self, value: Value) -> Iterator[torch.Tensor]:
        import torch

        if not isinstance(value, torch.Tensor) or not value.is_floating_point() or value.numel() < 2:
            return
        flat = value.reshape(-1)
        first, last = flat.numel() // 4, max(flat.numel() - flat.numel() // 4, 2)
        for _ in range(_DRAWS):
            one, two = torch.randint(first, last, (2,), generator=self._generator).tolist()
            pair = flat[[one, two]]
            # A zero may be padding that is promised to be zero, so it stays.
            if bool(torch.isfinite(pair).all()) and float(pair[0]) != float(pair[1]) and bool((pair != 0).all()):
                swapped, copied = flat.clone(), flat.clone()
                swapped[[two, one]] = pair
                copied[one] = pair[1]
                yield from (_like(swapped, value), _like(copied, value))
                return


def finite(answer: RunResult) -> bool:
    """Whether every float of an answer is finite."""
    import torch

    return all(bool(torch.isfinite(leaf).all()) for leaf in answer.outputs if leaf.is_floating_point())


def is_scalar(value: Value) -> bool:
    """Whether an input is one number or flag."""
    return isinstance(value, (bool, int)) or (isinstance(value, float) and math.isfinite(value))


def _like(flat: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """Return the elements of `flat` in the shape and strides of `value`."""
    made = value.clone()  # keeps the strides of a dense tensor
    return made.copy_(flat.reshape(value.shape))
