"""Plants NaN and huge numbers where the golden reads nothing: behind a length, in pages that no table names, behind a mask.

What lies there on a device is what an earlier kernel left: huge numbers, NaN. A kernel that lets it in is wrong, yet with
ordinary values it may pass: a product with a mask of zeros hides every number but Inf and NaN. So the wrapper is called again
with such values planted. The golden decides what is unread: its answer must stay the same to the bit, and what is planted
must be legal for the input (SPEC.md's ranges; NaN only where SPEC.md speaks of NaN). A value that the golden multiplies by zero
is read: NaN there is NaN in its answer. `padding` plants whole numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pypto_op.errors import ContractError
from pypto_op.judge.answers.references import References
from pypto_op.judge.cases.padding import Ends, other_numbers
from pypto_op.judge.running.staleness import Answered
from pypto_op.vocabulary import Outcome

if TYPE_CHECKING:
    import torch

    from pypto_op.backends.base import RunResult, Value

HUGE = 1e4
"""As the suite's zone `huge` has it; every floating dtype holds it."""

_LONGEST_LENGTHS = 1 << 16

Check = Callable[[Sequence["Value"]], None]


def plantings(base: Answered, references: References, check: Check, ends: Ends, *, nan: bool) -> Iterator[tuple[str, Answered]]:
    """Yield what was planted, in words, and the inputs with it; nothing where the golden reads all, or nobody can tell.

    Args:
        check: raises ContractError for inputs that are not legal.
        ends: least and greatest value of a whole-number input (`padding.Ends`).
        nan: NaN is a legal value.
    """
    inputs = other_numbers(base.inputs, lambda one, two: _same(references.golden(one), references.golden(two)), ends)
    if _differ(inputs, base.inputs) and _legal(check, inputs):
        yield "other whole numbers", replace(base, inputs=inputs)
    guesses = list(_guesses(base.inputs, references))
    for word, value in (("huge values", HUGE), ("NaN", float("nan"))) if nan else (("huge values", HUGE),):
        made = (_planted(base, references, check, masks, value) for masks in guesses)
        planted = next((found for found in made if found is not None), None)
        if planted is not None:
            yield word, replace(base, inputs=planted)


def _guesses(inputs: Sequence[Value], references: References) -> Iterator[list[torch.Tensor | None]]:
    """Yield masks of elements that may be unread, one per input: by the golden's gradients, then behind each list of lengths."""
    import torch

    floating = [isinstance(value, torch.Tensor) and value.is_floating_point() for value in inputs]
    told = references.unread(inputs)
    if told:
        yield [mask if is_float and bool(mask.any()) else None for mask, is_float in zip(told, floating, strict=True)]
    for lengths in inputs:
        if not isinstance(lengths, torch.Tensor) or lengths.dim() != 1 or lengths.dtype not in (torch.int32, torch.int64):
            continue
        masks = [_behind(lengths, value) if is_float else None for value, is_float in zip(inputs, floating, strict=True)]
        if any(mask is not None for mask in masks):
            yield masks


def _behind(lengths: torch.Tensor, value: Value) -> torch.Tensor | None:
    """Return what lies behind the lengths along the axis after that of the lengths; None where no axis is theirs."""
    import torch

    assert isinstance(value, torch.Tensor)
    for axis in range(value.dim() - 1):
        size = value.shape[axis + 1]
        if value.shape[axis] == len(lengths) <= _LONGEST_LENGTHS and int(lengths.min()) >= 0 and int(lengths.max()) <= size:
            rest = [1] * (value.dim() - axis - 2)
            places = torch.arange(size).reshape(1, size, *rest)
            mask = (places >= lengths.reshape(-1, 1, *rest)).expand(value.shape[axis:])
            return mask.expand(value.shape) if bool(mask.any()) else None
    return None


def _planted(
    base: Answered, references: References, check: Check, masks: Sequence[torch.Tensor | None], value: float
) -> list[Value] | None:
    """Return the inputs with a value planted, with both signs, in every tensor that the golden leaves unread; None without any.

    Args:
        base, references, check: as for `plantings`.
    """
    import torch

    inputs = list(base.inputs)
    for place, mask in enumerate(masks):
        if mask is None or not bool(mask.any()):
            continue
        old = inputs[place]
        assert isinstance(old, torch.Tensor)
        if _is_plain(old, mask):
            continue  # zeros behind a length may be a promise
        changed = _filled(old, mask, value)
        alone = [*inputs[:place], changed, *inputs[place + 1 :]]
        if _legal(check, alone) and _same(references.golden(alone), base.reference.native):
            inputs = alone
    return inputs if _differ(inputs, base.inputs) else None


def _differ(inputs: Sequence[Value], base: Sequence[Value]) -> bool:
    return any(new is not old for new, old in zip(inputs, base, strict=True))


def _is_plain(old: torch.Tensor, mask: torch.Tensor) -> bool:
    """Whether all that is unread is one and the same number."""
    there = old[mask]
    return bool((there == there[0]).all())


def _filled(old: torch.Tensor, mask: torch.Tensor, value: float) -> torch.Tensor:
    import torch

    made = old.clone()  # keeps the strides of a dense tensor
    signs = 1 - 2 * (torch.arange(int(mask.sum())) % 2)
    made[mask] = (signs * value).to(old.dtype)
    return made


def _legal(check: Check, inputs: Sequence[Value]) -> bool:
    try:
        check(inputs)
    except ContractError:
        return False
    return True


def _same(answer: RunResult, base: RunResult) -> bool:
    """Whether two answers are equal to the bit, NaN where NaN is."""
    import torch

    if answer.outcome is not Outcome.OK:
        return False
    pairs = list(zip(answer.outputs, base.outputs, strict=True))
    bits = all(torch.equal(torch.nan_to_num(one, nan=-1.0), torch.nan_to_num(other, nan=-1.0)) for one, other in pairs)
    return bits and all(torch.equal(one != one, other != other) for one, other in pairs)
