"""Plants other whole numbers into padding that no golden reads: table entries behind a length, indices behind a count.

Drawn padding may be harmless by chance: the last page once more, which no maximum minds. What is planted must leave a right
kernel alone, so it stays legal by all that anybody could know:

* an element is padding only if the golden does not read it, and reads it once a length or count is larger. A last group's size
  that follows from the others is read by no golden, and a kernel may rely on it all the same;
* values stay between the ends that SPEC.md tells, else between those of the tensor itself: a kernel may load a page and mask it;
* a sorted tensor stays as it is, and rows of distinct values keep theirs in another order: a kernel may search, or invert;
* a value that fills more than half of the padding stays: a promise may stand behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

    from pypto_op.backends.base import Value

Ends = Callable[[int], tuple[int | None, int | None] | None]
"""Of an input, by its place: least and greatest legal value, None for an end that SPEC.md does not tell; None where what it
tells hangs on more than sizes, so that nobody can say what is legal."""

_MOST_ROWS = 16
_MOST_COLUMNS = 4096


def other_numbers(inputs: Sequence[Value], same: Callable[[Sequence[Value], Sequence[Value]], bool], ends: Ends) -> list[Value]:
    """Return the inputs with other whole numbers in their padding; as they are where there is none.

    Args:
        same: whether the golden's answers to two lists of inputs are equal to the bit.
        ends: see `Ends`.
    """
    made = list(inputs)
    for place, value in enumerate(inputs):
        if _is_list(value) and ends(place) is not None and not _is_sorted(value):
            changed = _changed(made, place, same, ends)
            if changed is not None and same(_with(made, place, changed), inputs):
                made[place] = changed
    return made


def _changed(
    inputs: Sequence[Value], place: int, same: Callable[[Sequence[Value], Sequence[Value]], bool], ends: Ends
) -> torch.Tensor | None:
    """Return one input with other numbers in its padding, None where it has none."""
    import torch

    old = inputs[place]
    assert isinstance(old, torch.Tensor)
    rows = old.reshape(-1, old.shape[-1])
    padding = torch.zeros(rows.shape, dtype=torch.bool)
    low, high = _span(old, ends(place))
    for row in range(len(rows)):

        def unread(column: int, row: int = row) -> bool:
            mask = torch.zeros(rows.shape, dtype=torch.bool)
            mask[row, column:] = True
            return same(_with(inputs, place, _filled(rows, mask, low, high, distinct=False).reshape(old.shape)), inputs)

        padding[row, _first(unread, rows.shape[1]) :] = True
    padding &= ~_promised(rows, padding)
    made = _filled(rows, padding, low, high, distinct=_is_distinct(rows)).reshape(old.shape)
    if torch.equal(made, old):
        return None
    longer = (_with(inputs, at, larger) for at, larger in _larger(inputs, place, ends))
    return made if any(not same(more, _with(more, place, made)) for more in longer) else None


def _first(unread: Callable[[int], bool], size: int) -> int:
    """Return the first column from which on a row is not read; its size where the last is."""
    low, high = 0, size
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if unread(middle) else (middle + 1, high)
    return low


def _larger(inputs: Sequence[Value], place: int, ends: Ends) -> Iterator[tuple[int, Value]]:
    """Yield each other whole-number input with its greatest value everywhere."""
    import torch

    for at, value in enumerate(inputs):
        told = ends(at)
        if at == place or told is None:
            continue
        if type(value) is int and told[1] is not None:
            yield at, told[1]
        elif isinstance(value, torch.Tensor) and _is_whole(value) and value.numel():
            yield at, torch.full_like(value, _span(value, told)[1])


def _span(value: torch.Tensor, told: tuple[int | None, int | None] | None) -> tuple[int, int]:
    low, high = told or (None, None)
    return (int(value.min()) if low is None else low), (int(value.max()) if high is None else high)


def _filled(rows: torch.Tensor, mask: torch.Tensor, low: int, high: int, *, distinct: bool) -> torch.Tensor:
    """Return rows with what is masked replaced: by its own values, moved by one, or by the two ends, never by what was there."""
    import torch

    made = rows.clone()
    if distinct:
        for row, kept in zip(made, mask, strict=True):
            row[kept] = row[kept].roll(1)
        return made
    there = rows[mask]
    first = torch.arange(len(there)) % 2 == 0
    ends = torch.where(first, low, high)
    made[mask] = torch.where(ends == there, low + high - ends, ends).to(rows.dtype)
    return made


def _promised(rows: torch.Tensor, padding: torch.Tensor) -> torch.Tensor:
    """Return where a value stands that fills more than half of the padding."""
    there = rows[padding]
    if not there.numel():
        return padding
    common = there.mode().values
    return (rows == common) if int((there == common).sum()) * 2 > there.numel() else rows != rows


def _is_list(value: Value) -> bool:
    import torch

    return (
        isinstance(value, torch.Tensor)
        and _is_whole(value)
        and value.dim() > 0
        and 0 < value.numel() // max(value.shape[-1], 1) <= _MOST_ROWS
        and 1 < value.shape[-1] <= _MOST_COLUMNS
    )


def _is_whole(value: torch.Tensor) -> bool:
    return not (value.is_floating_point() or value.is_complex() or value.dtype.itemsize == 0 or str(value.dtype) == "torch.bool")


def _is_sorted(value: Value) -> bool:
    steps = value.long().diff(dim=-1)  # type: ignore[union-attr]
    return bool((steps >= 0).all() or (steps <= 0).all())


def _is_distinct(rows: torch.Tensor) -> bool:
    return bool((rows.sort(dim=-1).values.diff(dim=-1) != 0).all())


def _with(inputs: Sequence[Value], place: int, value: Value) -> list[Value]:
    return [*inputs[:place], value, *inputs[place + 1 :]]
