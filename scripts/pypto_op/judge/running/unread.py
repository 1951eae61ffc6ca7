"""Plants NaN and huge numbers where the golden reads nothing: behind a length, in pages that no table names, behind a mask.

What lies there on a device is what an earlier kernel left: huge numbers, NaN. A kernel that lets it in is wrong, yet with
ordinary values it may pass: a product with a mask of zeros hides every number but Inf and NaN. So the wrapper is called again
with such values planted. The golden decides what is unread: its answer must stay the same to the bit, and what is planted
must be legal for the input (SPEC.md's ranges; NaN only where SPEC.md speaks of NaN). A value that the golden multiplies by zero
is read: NaN there is NaN in its answer. `padding` plants whole numbers.

SPEC.md speaks of NaN behind lengths, or under flags. A golden that picks rows leaves others among the real ones, too, and a
right kernel may multiply those by zero, as a product with a matrix of weights does. So NaN lies where lengths and flags say, and
where gradients say in tensors alone of which neither says anything; huge values lie wherever the golden reads nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

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
Masks: TypeAlias = "Sequence[torch.Tensor | None]"
"""One per input: of a floating tensor, which elements may be unread."""


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
    told, named = _by_gradients(base.inputs, references), list(_named(base.inputs))
    planting = _Planting(base, references, check)
    for word, value in (("huge values", HUGE), ("NaN", float("nan"))) if nan else (("huge values", HUGE),):
        planted = planting.named_first(named, told, value) if math.isnan(value) else planting.first([*told, *named], value)
        if _differ(planted, base.inputs):
            yield word, replace(base, inputs=planted)


def _by_gradients(inputs: Sequence[Value], references: References) -> list[Masks]:
    """Return one list of masks of elements that may be unread, one per input; none where there are no gradients.

    Gradients say nothing of what the golden rounds or compares: they are 0 where it is read, too.
    """
    told = zip(references.unread(inputs), inputs, strict=False)
    masks = [mask if _is_floating(value) and bool(mask.any()) else None for mask, value in told]
    return [masks] if masks else []


def _named(inputs: Sequence[Value]) -> Iterator[Masks]:
    """Yield masks of elements that may be unread, one per input: behind each list of lengths, by each mask."""
    import torch

    floating = [_is_floating(value) for value in inputs]
    for lengths in inputs:
        if not isinstance(lengths, torch.Tensor) or lengths.dim() != 1 or lengths.dtype not in (torch.int32, torch.int64):
            continue
        masks = [_behind(lengths, value) if is_float else None for value, is_float in zip(inputs, floating, strict=True)]
        if any(mask is not None for mask in masks):
            yield masks
    yield from _left_out(inputs)


def _left_out(inputs: Sequence[Value]) -> Iterator[list[torch.Tensor | None]]:
    """Yield masks of what the flags of an input may leave out of the floating tensors, for each place of their axes."""
    import torch

    tensors = [value if isinstance(value, torch.Tensor) and value.is_floating_point() else None for value in inputs]
    most = max((value.dim() for value in tensors if value is not None), default=0)
    for place, flags in enumerate(inputs):
        others = [None if at == place else value for at, value in enumerate(tensors)]
        for off in _off(flags):
            for start in range(most):
                masks = [None if value is None else _under(off, value, start) for value in others]
                if any(mask is not None for mask in masks):
                    yield masks


def _off(flags: Value) -> Iterator[torch.Tensor]:
    """Yield what flags of 0 and 1 may leave out, either side; of whole numbers below 0 and from 0 on, those below 0."""
    import torch

    if not isinstance(flags, torch.Tensor) or flags.dim() == 0 or flags.numel() == 0:
        return
    if bool(((flags == 0) | (flags == 1)).all()):
        yield from (off for off in (flags == 0, flags == 1) if bool(off.any()) and not bool(off.all()))
    elif not flags.is_floating_point() and bool((flags < 0).any()) and not bool((flags < 0).all()):
        yield flags < 0


def _under(off: torch.Tensor, value: torch.Tensor, start: int) -> torch.Tensor | None:
    """Return what lies under flags whose first axis is a tensor's axis `start`; None where their shapes do not fit."""
    end = start + off.dim()
    if value.shape[start:end] != off.shape:
        return None
    return off.reshape(*off.shape, *[1] * (value.dim() - end)).expand(value.shape)


def _behind(lengths: torch.Tensor, value: Value) -> torch.Tensor | None:
    """Return what lies behind the lengths along the axis after theirs, which may be nothing; None where no axis is theirs."""
    import torch

    assert isinstance(value, torch.Tensor)
    for axis in range(value.dim() - 1):
        size = value.shape[axis + 1]
        if value.shape[axis] == len(lengths) <= _LONGEST_LENGTHS and int(lengths.min()) >= 0 and int(lengths.max()) <= size:
            rest = [1] * (value.dim() - axis - 2)
            places = torch.arange(size).reshape(1, size, *rest)
            mask = (places >= lengths.reshape(-1, 1, *rest)).expand(value.shape[axis:])
            return mask.expand(value.shape)
    return None


@dataclass(frozen=True)
class _Planting:
    """Plants values, with both signs, where the golden leaves a tensor unread; the arguments are those of `plantings`."""

    base: Answered
    references: References
    check: Check

    def first(self, guesses: Sequence[Masks], value: float) -> list[Value]:
        """Return the inputs with a value in every tensor of which the golden leaves some unread: by the first mask that holds."""
        inputs = list(self.base.inputs)
        for place in range(len(inputs)):
            alone = (self._with(inputs, place, masks[place], value) for masks in guesses)
            inputs = next((made for made in alone if made is not None), inputs)
        return inputs

    def named_first(self, named: Sequence[Masks], told: Sequence[Masks], value: float) -> list[Value]:
        """Return the same by all masks of `named` that hold, and by `told` where none does."""
        inputs = list(self.base.inputs)
        for place in range(len(inputs)):
            mask: torch.Tensor | None = None
            for masks in named:
                if (one := masks[place]) is not None:
                    more = one if mask is None else mask | one
                    holds = not bool(more.any()) or self._with(inputs, place, more, value, plain=True) is not None
                    mask = more if holds else mask
            alone = (self._with(inputs, place, one, value) for one in ([mask] if mask is not None else [m[place] for m in told]))
            inputs = next((made for made in alone if made is not None), inputs)
        return inputs

    def _with(
        self, inputs: list[Value], place: int, mask: torch.Tensor | None, value: float, *, plain: bool = False
    ) -> list[Value] | None:
        """Return inputs with a value under a mask in one of them; None where the golden minds, or it is not legal.

        `plain`: in the place of one number that lies there throughout, too; zeros behind a length may be a promise.
        """
        import torch

        old = self.base.inputs[place]
        if mask is None or not isinstance(old, torch.Tensor) or not bool(mask.any()) or not plain and _is_plain(old, mask):
            return None
        made = [*inputs[:place], _filled(old, mask, value), *inputs[place + 1 :]]
        return made if _legal(self.check, made) and _same(self.references.golden(made), self.base.reference.native) else None


def _is_floating(value: Value) -> bool:
    import torch

    return isinstance(value, torch.Tensor) and value.is_floating_point()


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
