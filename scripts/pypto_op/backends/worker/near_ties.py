"""Moves values that lie within rounding of a tie to its other side, where another honest kernel may find them.

Each way (1, 2, ...) is one such choice for every value of a run; a judge takes an answer that some way gives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from pypto_op.backends.worker.decisions import COMPARES, ORDERS, Step

LONGEST = 8
"""Values of one row that may all change places; among more, some places are given to neighbours only."""

_LONGEST_TURNED, _MOST_TURNED = 256, 1 << 24
"""So many equal values of one row may all change places: a softmax that underflows makes zeros of logits that another kernel
still tells apart. So many may be the one that is asked for. Fewer where all turns of all rows are more elements than this."""

_AS_SORTED, _BACKWARDS = 1, 2
"""The ways that let a row take longer chains of equal values from its one end, and from its other."""

SIDES = 4
"""Ways that move values beside a tie of numbers: all up, all down, and each by a draw, then against that draw."""

_RELATIVE = 2.0**-18
"""How far a value that carries rounding may move, beside itself: some 64 roundings of float32."""
_BEYOND_SEEN = 4.0
"""How far it may move as a multiple of the rounding that most elements of about its size were seen to carry, and itself."""
_USUAL = 0.9
_ALIKE, _GROUPS = 64, 32
"""So many elements that carry rounding tell what is usual among them, and a tensor has so many such groups at most, by size."""
_COMPUTED = 1 / 64
"""Share of elements that carry rounding from which on a whole tensor counts as computed."""
_MOST_SAMPLED = 1 << 20
_HALF_STEP = 0.5
_APART = 2.0**-40
"""Beside the greatest value, what sets equal values apart, so that an order of them can be asked for."""
_MOST_OF_A_LINE = 0.5
_GREATEST, _LEAST = frozenset({"argmax", "max"}), frozenset({"argmin", "min"})
_ONE_ANSWER = _GREATEST | _LEAST
"""Orders that take the first of equal values, as their pages say; the others leave it open."""


def reach_of(wide: torch.Tensor, native: torch.Tensor) -> torch.Tensor | None:
    """Return by how much each value may be off in honest code, 0 where it is exact; None where all are.

    A comparison of exact numbers has one right answer: whole numbers, and tensors of which hardly an element carries
    rounding (a single element may be exact by luck: half of a row's maximum).

    Args:
        wide: the values in float64.
        native: the same values as the golden as it stands has them, which shows how much rounding they carry.
    """
    mine = native.to(torch.float64)
    if mine.shape != wide.shape or not wide.numel():
        return None
    whole = (wide == wide.round()) & (mine == mine.round())
    finite = torch.isfinite(wide) & torch.isfinite(mine)
    differs = (mine != wide) & finite
    computed = int(differs.sum()) >= _COMPUTED * wide.numel()
    rough = ((finite & computed) | differs) & ~whole
    if not bool(rough.any()):
        return None
    size, error = wide.abs(), (mine - wide).abs()
    seen = torch.maximum(
        _usual(size[differs][:_MOST_SAMPLED], error[differs][:_MOST_SAMPLED], size), torch.where(differs, error, 0.0)
    )
    return torch.where(rough, _RELATIVE * size + _BEYOND_SEEN * seen, 0.0)


def _usual(of: torch.Tensor, error: torch.Tensor, size: torch.Tensor) -> torch.Tensor:
    """Return for each size what error is usual near it: a small exponential carries less rounding than a large one beside it.

    What is left of large terms is small and carries much, which the errors of its neighbours in size tell.

    Args:
        of: sizes of what carries rounding.
        error: what it carries.
        size: of all elements.
    """
    count = max(1, min(of.numel() // _ALIKE, _GROUPS))
    order = of.argsort()
    groups = error[order][: of.numel() // count * count].reshape(count, -1)
    usual = torch.quantile(groups, _USUAL, dim=-1)
    near = torch.nn.functional.max_pool1d(usual.reshape(1, 1, -1), 3, stride=1, padding=1).reshape(-1)
    first = of[order][: of.numel() // count * count].reshape(count, -1)[1:, 0]
    return near[torch.bucketize(size, first.contiguous(), right=True)]


def moved(
    step: Step, at: int, wide: torch.Tensor, way: int, number: int, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[torch.Tensor, int]:
    """Return an operand of a step as one way has it, and how many ways there are to tell its ties; 0 where it has none.

    Args:
        at: place of the operand.
        wide: its values in float64.
        way: 1, 2, ...; 0 leaves them.
        number: of the step, which its draw depends on.
    """
    native = step.operands[at]
    reach = reach_of(wide, native)
    if step.name == "mode" or (step.name in ORDERS and isinstance(args[-1], torch.Tensor) and len(args) > 1):
        return wide, 0  # it counts equal values, or takes the greater of two element by element
    if step.name in ORDERS:
        return _reordered(step.name, wide, reach, way, args, kwargs)
    if reach is None:
        return wide, 0
    if step.whole:
        reach = reach.clamp(max=_HALF_STEP)
    return wide + _signs(wide, way, number, step.narrowed is not None) * (1 if at == 0 else -1) * reach, SIDES


def summed(ways: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Return a least and a greatest answer of one output where ties met in sums, which no way tells; nothing where none did.

    Two codes beside ties add to a sum what they weigh, with either sign. Honest code may round one up and leave the other, and
    a few ways need not have done just that. So where most of a line (a row, a column) differs from way to way, each element of
    it may be off by as much more as the line's greatest difference.

    Args:
        ways: the output as each way has it, in float64; the first is the usual one.
    """
    together = torch.stack(list(ways))
    low, high = together.amin(dim=0), together.amax(dim=0)
    apart = (high - low).nan_to_num(0.0, 0.0, 0.0)
    more = torch.zeros_like(apart)
    for dim in range(apart.dim() if apart.numel() else 0):
        most = (apart > 0.0).to(torch.float64).mean(dim=dim, keepdim=True) > _MOST_OF_A_LINE
        more = torch.maximum(more, torch.where(most, apart.amax(dim=dim, keepdim=True), 0.0))
    if not bool((more > 0.0).any()):
        return []
    more = torch.where(apart > 0.0, more, 0.0)
    return [low - more, high + more]


def alike(step: Step, args: Sequence[Any]) -> torch.Tensor | None:
    """Return where both sides of a comparison are one number, None where they nowhere are, or one side is no tensor.

    A threshold that was taken from the values themselves, such as the k-th largest, equals the value that it was taken from in
    every honest kernel: no rounding lies between the two. Two numbers that were computed apart do not meet in float64.
    """
    both = args[:2]
    if step.name not in COMPARES or len(both) < 2 or not all(isinstance(side, torch.Tensor) for side in both):
        return None
    if any(side.dtype is not torch.float64 for side in both):
        return None
    same: torch.Tensor = both[0] == both[1]
    return same if bool(same.any()) else None


def other_extreme(step: Step, args: Sequence[Any], same: torch.Tensor, way: int) -> torch.Tensor | None:
    """Return where a value is its line's extreme as one way has it, for `x == x.amax(dim)`; None where nothing lies near a tie.

    Such a golden asks which place has the maximum, as argmax does. Another kernel may find it at the one that comes next here,
    at the second one, and so on, where they lie within rounding. What equals the extreme to the last bit keeps its order.

    Args:
        same: where both sides are one number (`alike`).
        way: 0 for what the golden says.
    """
    if step.name != "eq" or not way or sorted(step.operands) != [0, 1]:
        return None
    at = 0 if args[0].numel() >= args[1].numel() else 1
    values, extreme = args[at], args[1 - at]
    sizes = (1,) * (values.dim() - extreme.dim()) + tuple(extreme.shape)
    dims = [dim for dim, size in enumerate(sizes) if size < values.shape[dim]]
    reach = reach_of(values, step.operands[at])
    if len(dims) != 1 or same.shape != values.shape or reach is None or not bool(same.any(dim=dims[0]).all()):
        return None
    apart = torch.where(same, torch.inf, (values - extreme).abs())
    places = apart.argsort(dim=dims[0], stable=True).narrow(dims[0], min(way, values.shape[dims[0]]) - 1, 1)
    taken = torch.zeros_like(same).scatter(dims[0], places, True) & (apart <= reach)
    return torch.where(taken.any(dim=dims[0], keepdim=True), taken, same)


def _signs(wide: torch.Tensor, way: int, number: int, drawn: bool) -> torch.Tensor | float:
    """Return how much of its reach each value moves by; a 16-bit rounding moves up as often as down."""
    if way == 0:
        return 0.0
    if way <= 2 and not drawn:
        return 1.0 if way == 1 else -1.0
    draw = torch.Generator().manual_seed(1000 * number + (way - 1) // 2)
    amount = _HALF_STEP + _HALF_STEP * torch.rand(wide.shape, generator=draw, dtype=torch.float64)
    sign = 1.0 - 2.0 * torch.randint(0, 2, wide.shape, generator=draw).to(torch.float64)
    return (sign * amount).to(wide.device) * (1 if way % 2 else -1)


def as_they_were(result: Any, step: Step, moved: Any, wide: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Return what an order gave, with the values that stand at its places: it was asked with equal ones set apart.

    A threshold that is taken from them would pass over the values that it is equal to.

    Args:
        result: of the step: values, places, or both.
        moved: the operand that it was given.
        wide: the operand as it was.
    """
    if step.name not in ORDERS or moved is wide:
        return result
    if isinstance(result, torch.Tensor):
        if step.name == "msort" and wide.dim():
            return wide.gather(0, moved.argsort(dim=0))
        return wide[moved == result].reshape(-1)[0] if result.is_floating_point() and not result.dim() else result
    values, places = result
    dim = _dim(step.name, args, kwargs) or 0
    held = places.unsqueeze(dim) if places.dim() < wide.dim() else places
    return type(result)((wide.gather(dim, held).reshape(values.shape) if wide.dim() else wide, places))


def _reordered(
    name: str, wide: torch.Tensor, reach: torch.Tensor | None, way: int, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[torch.Tensor, int]:
    """Let values that lie too near one another to be told apart change places in a ring."""
    open_ties = name not in _ONE_ANSWER and not kwargs.get("stable")
    if (reach is None and not open_ties) or wide.numel() < 2:
        return wide, 0
    dim = _dim(name, args, kwargs)
    rows = wide.reshape(1, -1) if dim is None or not wide.dim() else wide.movedim(dim, -1)
    room = torch.zeros_like(wide) if reach is None else reach
    room = room.reshape(1, -1) if dim is None or not wide.dim() else room.movedim(dim, -1)
    ordered, index = rows.sort(dim=-1, stable=True)
    near = torch.maximum(*_neighbours(room.gather(-1, index)))
    gap = ordered.diff(dim=-1)
    together = (gap <= near) & torch.isfinite(gap) & ((near > 0) | open_ties)
    if not bool(together.any()):
        return wide, 0
    most = min(_LONGEST_TURNED, _MOST_TURNED // rows.numel())
    if name in _ONE_ANSWER:
        place, start, size = _of_the_best(ordered, room.gather(-1, index), name, max(most, LONGEST))
    else:
        place, start, size = _rings(together, way)
        first, count = _of_equal_values(together, gap)
        whole = (count > LONGEST) & (count <= most)
        start, size = torch.where(whole, first, start), torch.where(whole, count, size)
    target = start + (place - start + way - 1) % size
    ways = int(size.max())
    if name not in _ONE_ANSWER and way in (_AS_SORTED, _BACKWARDS):
        long, end = (count > LONGEST) & ~whole, first + count - 1
        start, size = torch.where(long, first, start), torch.where(long, count, size)
        target = torch.where(long, place if way == _AS_SORTED else first + end - place, target)
    apart = (ordered.abs().nan_to_num(0.0, 0.0, 0.0).amax(-1, keepdim=True) * _APART).clamp(min=1e-30)
    spread = torch.where(size > 1, ordered + (place - start) * apart, ordered)
    found = rows.clone().scatter(-1, index, spread.gather(-1, target))
    if name in _ONE_ANSWER:
        found = _first_of_equals(found, rows, name)
    back = found.reshape(wide.shape) if dim is None or not wide.dim() else found.movedim(-1, dim)
    return (back if way else wide), ways


def _neighbours(values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return values[..., :-1], values[..., 1:]


def _rings(together: torch.Tensor, way: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return, per place of sorted rows, the place, where its ring starts, and how many places that one has.

    A long chain is cut into rings of `LONGEST`, every second way half a ring later.
    """
    begins = _begins(together)
    place, chain, count = _counted(begins)
    later = torch.where(count > LONGEST, way % 2 * (LONGEST // 2), 0)
    cut = (place - chain + later) % LONGEST == 0
    return _counted(begins | cut)


def _of_the_best(
    ordered: torch.Tensor, room: torch.Tensor, name: str, most: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return what `_rings` does where one value alone is asked for: each way puts another one there that may be the best.

    Hundreds may be, among probabilities that are nearly alike.

    Args:
        ordered, room: sorted rows, and how much rounding each value may carry.
        most: so many places are in a ring at most, those nearest to the best.
    """
    count = ordered.shape[-1]
    end = count - 1 if name in _GREATEST else 0
    best, its_room = ordered[..., end : end + 1], room[..., end : end + 1]
    may = ((ordered - best).abs() <= torch.maximum(room, its_room)) & torch.isfinite(ordered) & (room + its_room > 0)
    members = (may.flip(-1) if end else may).cummin(-1).values.sum(-1, keepdim=True).clamp(1, most)
    place = torch.arange(count, device=ordered.device).expand_as(ordered)
    first = count - members if end else torch.zeros_like(members)
    inside = (place >= first) & (place < first + members)
    return place, torch.where(inside, first, place), torch.where(inside, members, 1)


def _first_of_equals(found: torch.Tensor, rows: torch.Tensor, name: str) -> torch.Tensor:
    """Return rows whose best value stands at the first place among those that held the same value: no rounding parts these.

    Args:
        found: the rows as one way has them, one value the best.
        rows: as they were, in float64. What is equal there was made of equal inputs, and is equal in every honest kernel.
        name: the order that is asked for.
    """
    best = (found.argmax if name in _GREATEST else found.argmin)(dim=-1, keepdim=True)
    same = rows == rows.gather(-1, best)  # of NaN nothing is
    first = torch.where(same.any(-1, keepdim=True), same.to(torch.uint8).argmax(dim=-1, keepdim=True), best)
    return found.scatter(-1, first, found.gather(-1, best)).scatter(-1, best, found.gather(-1, first))


def _of_equal_values(together: torch.Tensor, gap: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return, per place of sorted rows, where its chain of equal values starts and how many it has; 0 where some are not equal.

    A kernel takes equal values from either end of a row, however many there are: half of a row may be 0 behind a relu.
    """
    _, start, count = _counted(_begins(together))
    differs = torch.zeros_like(start, dtype=torch.bool)
    differs[..., 1:] = together & (gap != 0)
    unequal = torch.zeros_like(start).scatter_add(-1, start, differs.to(start.dtype)).gather(-1, start)
    return start, torch.where(unequal > 0, 0, count)


def _begins(together: torch.Tensor) -> torch.Tensor:
    """Return at which places of sorted rows a chain begins: values that may not be told apart."""
    return torch.nn.functional.pad(~together, (1, 0), value=True)


def _counted(begins: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return, per place of rows, the place, where its chain starts, and how many places that one has."""
    place = torch.arange(begins.shape[-1], device=begins.device).expand_as(begins)
    start = torch.where(begins, place, 0).cummax(-1).values
    return place, start, torch.zeros_like(start).scatter_add(-1, start, torch.ones_like(start)).gather(-1, start)


def _dim(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> int | None:
    """Return the axis that a step orders; None where it takes all elements."""
    at = 2 if name in ("topk", "kthvalue") else 1
    found = kwargs.get("dim", args[at] if len(args) > at else None)
    if isinstance(found, int) and not isinstance(found, bool):
        return found
    return 0 if name == "msort" else -1 if name in ("topk", "sort", "argsort", "kthvalue") else None
