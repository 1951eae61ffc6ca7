"""Makes inputs for operators that changed nothing in any pass (`idle`): values far away, zeros, equal values, NaN.

Each way is tried on the reference first. Only one that it takes, and in which something idle did something, is judged.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch

from pypto_op.triton.run.inputs import domains, filled, narrow, sides, signed, skewed, smaller, spread, turns
from pypto_op.triton.run.inputs.edges import is_ordered
from pypto_op.triton.run.inputs.packing import changed_copy, holds_integers, map_tensors, memory_of, same_layout, tensors_of

REACH, MEET, WITHIN, CODES, EXACT = "reach", "meet", "within", "codes", "exact"
"""The names of these moves, beside those of `skewed`: inputs of other kinds, and numbers of the files among whole ones.

`WITHIN` is a `REACH` of the size of the task's own inputs. `CODES` is one whose quotients by a scale lie exactly halfway,
`EXACT` one of multiples of a half, whose sums and products no rounding changes.
"""
EXACTLY = (CODES, EXACT)
"""Of these moves no value near a tie may fall on either side of it."""
TIMES = 4
"""So many passes of `REACH` there are at most: one kind of inputs hardly comes to everything."""
MEETINGS = 2
"""So many passes of `MEET` there are at most, the later ones where the outputs are few numbers: a wrong mean of the elements
that are left came within the tolerance once in a hundred draws."""
_ASKS_FOR_NAN = ("isnan ", "ne ", "eq ")
"""`x != x` is one way to ask."""
_COMPARES = ("eq ", "ne ", "gt ", "ge ", "lt ", "le ")
_ASKS_FOR_INFINITY = ("isinf ", "isneginf ", "eq ")
_TURNS = re.compile(rf"\({sides.TURN} (\d+)\)")
_ZEROS = "zeros"
_HALVES = (0.5, 2.0**-5)
"""Of multiples of these some lie halfway between two whole numbers, of the second ones up to a factor of 16, too."""
_TINY = (8, 16, 24)
"""Every other slice is divided by two to this power, or by a little more."""
_BEST = "topk "
"""Scores of a router are probabilities and a bias: only one that is far below zero lets all of them be so."""
_SHARE = 4
"""One whole number of so many meets a number of the files."""
_NEAR, _NEARER = 1.37, 23
"""Elements that are close differ by so much of themselves, divided by one of so many powers of two: no tolerance is that."""
_MOST_EQUAL = 31 / 32
"""The part of rows that are equal to another one, where only rounding shows."""
TOLD = (
    "an operator of the reference changes nothing for the task's own inputs (a bound that they do not "
    "reach); in this pass they come there: of both signs, large or no numbers, or all sums of products are below "
    "zero, and only gross errors counted"
)
TOLD_WITHIN = (
    "an operator of the reference changes nothing for the task's own inputs (a guard for zero, a tie of two maxima); in this "
    "pass they come there: whole rows are zero or have the other sign, also sums of products, elements are alike or lie halfway "
    "between whole numbers, no whole number is the least, or a loop has to go from element to element"
)
TOLD_CODES = (
    "in this pass the greatest elements are a number of the files times a power of two, so scales that follow from them are "
    "exact, and quotients lie exactly halfway between whole numbers: torch.round takes the even one"
)
TOLD_EXACT = (
    "the inputs of this pass are multiples of a half, so what the reference compares with a number is now and then exactly that "
    "number, in whatever order it is computed"
)
TOLD_MET = (
    "a comparison of the reference has one answer throughout for the task's own inputs (a token that is never drawn); "
    "in this pass some whole numbers were those that stand in the files, and sizes of the inputs"
)


Write = Callable[[torch.Tensor, torch.Tensor], None]
"""Changes a copy in its place, beside the tensor that it was made of."""
Ways = Iterator[tuple[str, Any]]
"""Kinds of inputs: what each is called, and inputs of the same layout as the task's."""


def within_reason(inputs: Any, idle: dict[str, bool]) -> dict[str, bool]:
    """Return what is idle without the overflows that only inputs of some thousands come to.

    Inputs around zero are made so large. A kernel of softmax(x / 100) that takes no maximum off is right for them up to 8,900,
    and another pass shows what happens at 128 (`skewed`).
    """
    floats = [tensor for tensor in tensors_of(inputs) if tensor.is_floating_point() and tensor.numel()]
    wide = any(tensor.dtype is not torch.float16 and bool(tensor.min() < 0 < tensor.max()) for tensor in floats)
    needless = [name for name in idle if wide and f"({sides.FAR})" in name and not name.startswith(sides.STABLE)]
    return {name: whole for name, whole in idle.items() if name not in needless}


def reaching(
    inputs: Any, idle: dict[str, bool], divisors: Callable[[], Sequence[float]] = tuple, *, weights: bool = False
) -> Ways:
    """Yield inputs that may come to what is idle, first those of the size of the task's own.

    `divisors` returns the numbers by which scales may divide; `weights`: there may be other ones.
    """
    below = [name for name, whole in idle.items() if not whole and any(f"({side})" in name for side in signed.ROWS)]
    loops = [name for name in idle if any(f"({side})" in name for side in turns.SIDES)]
    rest = {name: whole for name, whole in idle.items() if name not in (*below, *loops)}
    kinds = [*_opposed(inputs, below, weights=weights), *_negated(inputs, below), *_codes(inputs, idle, divisors)]
    kinds += _kinds(inputs, rest) if rest else ()
    kinds += [(f"{WITHIN} {kind}", partial(make, inputs)) for kind, make in turns.WAYS.items() if loops]
    kinds += [(f"{WITHIN} apart", partial(_changed, inputs, turns.far_apart))] if loops else []
    bounds = weights and any(f"({side})" in name for name in rest for side in (sides.LOWER, sides.UPPER))
    kinds += [(f"{REACH} {way}", partial(map_tensors, inputs, same_layout)) for way in filled.GAINS if bounds]
    for name, make in sorted(kinds, key=lambda kind: kind[0].startswith(REACH)):
        if (found := make()) is not None:
            yield name, found


def _kinds(inputs: Any, idle: dict[str, bool]) -> Iterator[tuple[str, Callable[[], Any | None]]]:
    """Yield what kinds of inputs are called, and what makes them."""
    floats, whole = not all(idle.values()), any(idle.values())
    count = sum(tensor.is_floating_point() for tensor in tensors_of(inputs))

    def has(*wanted: str) -> bool:
        return any(f"({side})" in name for name in idle for side in wanted)

    if has(sides.AT):
        yield f"{EXACT} multiples of {_HALVES[0]:g}", partial(_changed, inputs, partial(smaller.snap, _HALVES[0]))
        yield f"{EXACT} throughout", partial(_changed, inputs, partial(smaller.snap, _HALVES[0]), flags=True)
        if all(f"({sides.AT})" in name for name in idle):
            return
    if has(sides.BESIDE):  # what an optimizer keeps of squares, or of greatest elements, too
        yield f"{WITHIN} tiny squares", partial(_changed, inputs, partial(smaller.shrink_squares, zero=True), scales=True)
    # A row of zeros does not show a least scale that is left out; one that lies below it does.
    for power in _TINY if has(sides.BESIDE) else _TINY[-1:] if has(sides.LOWER) else ():
        yield f"{WITHIN} tiny {power}", partial(_changed, inputs, partial(smaller.shrink, power, zero=True))
    if has(domains.NEARLY):  # the logarithm of nothing is infinite; `log(1 + x)` is only off there
        yield f"{REACH} tiny alone", partial(_changed, inputs, partial(smaller.shrink, _TINY[-1]))
    if has(sides.BESIDE):
        yield f"{WITHIN} tiny alone", partial(_changed, inputs, partial(smaller.shrink, _TINY[1]))
        yield f"{WITHIN} tiny squares alone", partial(_changed, inputs, smaller.shrink_squares, scales=True)
    alone = all(any(f"({side})" in name for side in sides.OF_ZERO) for name in idle)
    for way in (spread.BOTH, spread.DOWN) if whole else ():
        yield f"{REACH} {way} {_ZEROS}", partial(spread.everything, inputs, way, floats=floats, whole=True, zeros=True)
    for way in (spread.BOTH, spread.UP, spread.DOWN) if whole else () if alone else (spread.BOTH,):
        yield f"{REACH} {way} {'floats' if floats else ''}", partial(spread.everything, inputs, way, floats=floats, whole=whole)
    if floats and not alone and skewed.of_one_sign(inputs):
        yield f"{WITHIN} mirrored", partial(_changed, inputs, signed.mirroring(), scales=has(sides.LOWER))
    if floats:  # a scale of zero shows more, where the reference takes it
        yield f"{WITHIN} zeros", partial(_changed, inputs, smaller.zeroing(count), scales=True)
        yield f"{WITHIN} zero", partial(_changed, inputs, smaller.zeroing(count))
    if has(sides.GUARD):  # of a mask beside what it leaves, too
        yield f"{WITHIN} nothing", partial(_changed, inputs, smaller.zeroing(count), flags=True)
    shapes = {tensor.shape for tensor in tensors_of(inputs) if tensor.is_floating_point()}
    for shape in shapes if any(name.startswith(_ASKS_FOR_INFINITY) for name in idle) else ():
        yield f"{REACH} hidden {tuple(shape)}", partial(_changed, inputs, smaller.hiding(shape), scales=True)
    axes = range(-1, -1 - max((tensor.dim() for tensor in tensors_of(inputs)), default=0), -1)
    for step, axis in itertools.product(domains.STEPS, axes) if has(domains.PEAKS) else ():
        yield f"{REACH} peaks {axis} {step:g}", partial(_changed, inputs, partial(domains.peak, step, axis))
    for step in domains.STEPS if has(domains.STEEP) else ():
        yield f"{REACH} steep {step:g}", partial(_changed, inputs, partial(domains.steepen, step))
    for name, write in domains.ways(idle):
        yield f"{WITHIN} {name}", partial(_changed, inputs, write, scales=True)
    yield from ((f"{WITHIN} {name}", bits) for name, bits in narrow.ways(inputs, idle))
    for word in _TURNS.findall(" ".join(idle)):
        for target, _ in enumerate(tensors_of(inputs)):
            yield f"{WITHIN} turned {target} {word}", partial(signed.turned, inputs, target, int(word))
    for name, change in _CHANGES.items() if floats and not alone else ():
        yield name, partial(_changed, inputs, change.write, infinite=change.infinite)
    if has(sides.NAN) or any(name.startswith(_ASKS_FOR_NAN) for name in idle):
        yield f"{REACH} nan", partial(_changed, inputs, smaller.missing(), scales=True)
    for target, _ in enumerate(tensors_of(inputs)) if has(sides.EQUAL) else ():
        # the distance of equal rows is the root of what rounding leaves, in the reference, too
        far = any(sides.DISTANCE in name for name in idle if f"({sides.EQUAL})" in name)
        # and negative in one of some rows alone
        first = _MOST_EQUAL if far else 1 / _SHARE
        yield f"{REACH if far else WITHIN} equal {target}", partial(_equalled, inputs, target, first)
    if floats and count > 1 and not alone:  # whole rows: those of unit vectors, say
        far = any(sides.DISTANCE in name for name in idle)
        yield f"{REACH if far else WITHIN} same rows", partial(smaller.same_rows, inputs)
    # vectors that are alike, or opposite, come within a margin
    for target, _ in enumerate(tensors_of(inputs)) if has(sides.CLOSE, sides.LOWER, sides.UPPER) and count > 1 else ():
        for kind, sign in (("close", 1), ("opposite", -1)):
            yield f"{WITHIN} {kind} {target}", partial(_equalled, inputs, target, 1.0, near=sign)
    others = any(among for name, among in idle.items() if f"({sides.COUNT})" not in name)  # whole numbers that nobody counts
    yield from ((f"{WITHIN} {kind}", partial(make, inputs)) for kind, make in signed.WAYS.items() if others)
    if has(sides.LOWER, sides.UPPER):
        yield f"{WITHIN} ends", partial(signed.at_ends, inputs)
        yield f"{WITHIN} limits", partial(signed.at_limits, inputs)
    for step in _HALVES if has(sides.HALF) else ():
        yield f"{WITHIN} multiples of {step:g}", partial(_changed, inputs, partial(smaller.snap, step))
    several = sum(map(holds_integers, tensors_of(inputs))) > 1
    for target, _ in enumerate(tensors_of(inputs)) if several and not alone else ():
        yield f"{WITHIN} missing {target}", partial(signed.without_least, inputs, target)
    if not alone:
        yield f"{WITHIN} missing", partial(signed.without_least, inputs)
    if has(sides.LOWER, sides.GUARD) or any(name.startswith(_COMPARES) for name in idle):
        yield f"{WITHIN} rows of the least", partial(signed.rows_of_least, inputs)
    yield from ((f"{WITHIN} {kind}", partial(make, inputs)) for kind, make in signed.GROUPS.items() if whole)


def _opposed(inputs: Any, below: Collection[str], *, weights: bool) -> Iterator[tuple[str, Callable[[], Any | None]]]:
    """Yield inputs one of which, or whose weights, are below zero and the others above it: so are sums of their products."""
    count = sum(skewed.movable(inputs))
    grouped = any(name.startswith(sides.GROUPED) for name in below)  # no row that lies far below is a group of them
    targets = {str(target): (target, signed.OF_INPUTS) for target in range(count if count > 1 or grouped else 0)}
    targets |= {filled.WEIGHTS: (count, signed.OF_WEIGHTS), f"{filled.WEIGHTS} too": (signed.ALL, ())} if weights else {}
    far = any(f"({sides.SUNK})" in name or name.startswith(_BEST) for name in below)
    deep = any(f"({domains.DEEP})" in name for name in below)
    for name, (target, ends) in targets.items() if below else ():
        yield f"{WITHIN} opposed {name}", partial(_changed, inputs, signed.opposing(target, 0.0))
        deepest = [domains.OF_WEIGHTS if name.startswith(filled.WEIGHTS) else domains.OF_INPUTS] if deep else []
        deepest += [2 * domains.DEPTH] if deep and grouped else []
        for most in [*(ends if far else ()), *deepest]:
            yield f"{REACH} opposed {name} {most:g}", partial(_changed, inputs, signed.opposing(target, most))


def _negated(inputs: Any, below: Collection[str]) -> Iterator[tuple[str, Callable[[], Any | None]]]:
    """Yield inputs of one sign that have the other one, in half of their rows, and in all.

    A plain extreme may begin at zero where a task that draws some numbers of both signs draws others of one: those have it by
    their meaning (a history of maxima). Where all have one sign, `torch.rand` was at hand.
    """
    picks = sides.BOTH_SIGNS if skewed.of_both_signs(inputs) else (*sides.BOTH_SIGNS, *sides.EXTREMES)
    named = any(name.startswith(picks) and f"({sides.ONE_SIGN})" in name for name in below)
    if named and skewed.of_one_sign(inputs):
        yield f"{WITHIN} mirrored", partial(_changed, inputs, signed.mirroring())
        yield f"{WITHIN} negated", partial(_changed, inputs, signed.negate)


def _codes(
    inputs: Any, idle: dict[str, bool], divisors: Callable[[], Sequence[float]]
) -> Iterator[tuple[str, Callable[[], Any | None]]]:
    """Yield inputs whose greatest elements are such a number times a power of two, where a scale may follow from them."""
    if any(f"({sides.CODES})" in name for name in idle):
        for number in divisors():
            yield f"{CODES} {number:g}", partial(_changed, inputs, partial(smaller.encode, number))


def meeting(inputs: Any, idle: dict[str, bool], numbers: Sequence[float]) -> Ways:
    """Yield inputs of which every fourth whole number is left out, or is one of the files', or about the size of an axis."""
    if not any(idle.values()):
        return
    sizes = {size + more for tensor in tensors_of(inputs) for size in tensor.shape for more in (-1, 0, 1)}
    ignored = [int(word) for name in idle for word in re.findall(rf"\({sides.WITHOUT} (-?\d+)\)", name)]
    for target, _ in enumerate(tensors_of(inputs)) if ignored else ():  # another tensor may not hold it
        if (found := _meeting(inputs, ignored, only=target)) is not None:
            yield f"{MEET} ignored {target}", found
    whole = sorted({int(number) for number in numbers if number.is_integer() and abs(number) <= spread.FAR} | sizes)
    for name, some in (
        ("all", whole),
        ("up", [one for one in whole if one >= 0]),
        ("down", [one for one in whole if one < 0]),
    ):
        if (found := _meeting(inputs, some)) is not None:
            yield f"{MEET} {name}", found
    if (found := _meeting(inputs, whole, within=True)) is not None:
        yield f"{MEET} within", found


def chosen(
    ways: Ways, idle: Collection[str], known: dict[str, set[str]], come_to: Callable[[str, Any], set[str]]
) -> tuple[str, Any]:
    """Return what the way is called that comes to most of what is idle, and its inputs; "" and None: none comes to anything.

    Args:
        ways: to choose from; what those of that size come to does not count for the later ones, where only gross errors do.
        idle: what was idle in every pass.
        known: what each way comes to, as far as somebody asked; what is chosen is taken off.
        come_to: asks the reference what the inputs of a way come to.
    """
    best, most, found = "", 0, None
    exact: set[str] = set()
    for name, moved in ways:
        if name not in known:
            known[name] = come_to(name, moved)
        comes = known[name].intersection(idle)
        if not name.startswith(REACH):
            exact |= comes
        else:
            comes -= exact
        if (count := len(comes)) > most:
            best, most, found = name, count, moved
    known[best] = set()
    return best, found


def _meeting(inputs: Any, numbers: list[int], *, within: bool = False, only: int | None = None) -> Any | None:
    """Return inputs of which some whole numbers are these; `within`: of these those from 0 to their greatest one.

    `only` is the one tensor that is changed.
    """
    positions = iter(range(len(tensors_of(inputs))))

    def change(copy: torch.Tensor, tensor: torch.Tensor) -> bool:
        if only not in (None, next(positions)) or not holds_integers(tensor):
            return False
        limits, memory = torch.iinfo(tensor.dtype), memory_of(copy)
        low, high = (0, int(memory.max())) if within and memory.numel() else (limits.min, limits.max)
        fitting = [number for number in numbers if low <= number <= high]
        places = torch.arange(1, memory.numel(), _SHARE, device=memory.device)
        if not fitting or not len(places):
            return False
        which = torch.arange(len(places), device=memory.device) % len(fitting)
        memory[places] = torch.tensor(fitting, device=memory.device)[which].to(tensor.dtype)
        turns.keep_leading(copy, tensor)
        return True

    return changed_copy(inputs, change)


def _changed(inputs: Any, write: Write, *, scales: bool = False, infinite: bool = False, flags: bool = False) -> Any | None:
    """Return inputs of the same layout, the floats among them changed; None where none can be.

    Args:
        write: into a copy, beside its tensor.
        scales: what may be a scale beside another tensor is changed, too.
        flags: every float is, zeros and ones of a mask, too.
        infinite: what holds infinities or NaN already is changed, too.
    """
    movable = iter(skewed.movable(inputs, scales=scales))

    def change(copy: torch.Tensor, tensor: torch.Tensor) -> bool:
        lost = infinite and tensor.is_floating_point() and not bool(torch.isfinite(tensor).all())
        if not next(movable) and not lost and not (flags and tensor.is_floating_point()):
            return False
        write(copy, tensor)
        return True

    return changed_copy(inputs, change)


def _equalled(inputs: Any, target: int, first: float, *, near: int = 0) -> Any | None:
    """Return inputs of which the tensor of that number has its first rows, and every fourth element, from the others, or None.

    `first` is the part of the rows; `near`: elements are only about as large as the others', of that sign.
    """
    tensors = tensors_of(inputs)
    meant = tensors[target]
    others = [memory_of(other) for other in tensors if other is not meant and other.dtype is meant.dtype and other.numel()]
    if not others or not skewed.movable(inputs)[target] or is_ordered(meant):
        return None
    low, high = torch.aminmax(meant)
    positions = iter(range(len(tensors)))

    def one(tensor: torch.Tensor) -> torch.Tensor:
        copy = same_layout(tensor)
        memory = memory_of(copy)
        for turn, other in enumerate(others) if next(positions) == target else ():
            places = torch.arange(len(memory), device=memory.device)
            places = places[((places % _SHARE == 0) | (places < int(first * len(memory)))) & (places % len(others) == turn)]
            found = other[places % len(other)]
            found = found * (1 + _NEAR * 2.0 ** -(2 + places % _NEARER)).to(found) * near if near else found
            memory[places] = torch.where((low <= found) & (found <= high), found, memory[places])
        return copy

    return map_tensors(inputs, one)


class _Change(NamedTuple):
    """How floats are changed.

    Attributes:
        write: into a copy, beside its tensor.
        infinite: what holds infinities or NaN already is changed, too.
    """

    write: Write
    infinite: bool = False


_CHANGES = {
    f"{REACH} more": _Change(spread.more),
    f"{WITHIN} level": _Change(smaller.level),
    f"{REACH} lost": _Change(smaller.lose, infinite=True),
}
