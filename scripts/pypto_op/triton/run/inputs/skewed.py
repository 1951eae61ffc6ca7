"""Other values for float inputs: a mean, a padding or an epsilon that hides among the task's own values shows elsewhere.

`torch.randn` has mean 0. So a variance that counts its padding, a constant in the place of a log-sum-exp, or a norm without its
mean is nearly right. Its rows hold both signs, so a maximum that counts a padding of 0 is right. Later passes therefore move
such inputs. They stay within their range and what is zero stays zero (a triangle, a mask), but where values are sorted. Each
value depends on the value that it replaces alone, so equal and sorted values stay so, and so does a symmetric matrix.

- `UP`: a mean in the middle goes to about 0.7 of the range.
- `LOW`: all below zero. Where no input lies around zero, inputs of one sign come nearer to their end by zero.
- `HIGH`: all above zero, and small, where an epsilon matters.
- `FAR`: much larger than the task's own, the last slice along each axis above all others, and one row along each axis far below
  zero. What overflows without need, a bound that is left out, a last column that is never read and a maximum that begins at 0
  show here. Only gross errors count (`coarse`).
"""

from __future__ import annotations

import math
from typing import Any

import torch

from pypto_op.triton.run.inputs import infinite
from pypto_op.triton.run.inputs.edges import is_ordered, is_sorted
from pypto_op.triton.run.inputs.packing import as_given, map_tensors, memory_of, once, same_layout, tensors_of, widened

UP, LOW, HIGH, FAR = "up", "low", "high", "far"
MIDDLE, LESS = "middle", "less"
"""As `FAR`, but less: where the reference is infinite then (squares of float16, an exponential)."""
OF_FAR = (FAR, MIDDLE, LESS)
_LEAST = 16
"""So many different values has what a continuous distribution drew; signs have fewer, and integers are whole."""
_SHARE = 0.25
"""Of the elements that are not zero, more than this are below, and above."""
_POWER = 0.5
"""The place of a value in its range, 0 to 1, is raised to this: a mean in the middle goes to about 0.7."""
_MARGIN = 0.05
"""The nearest to zero that a side begins, as a part of its end."""
_SMALL, _NEAR = 2.0**-8, 2.0**-4
"""What `HIGH` shrinks by: eps = 1e-8 beside a mean square of 1e-5 shows still. What `LOW` leaves of a range by zero."""
_SMALL_BFLOAT, _SMALL_HALF, _LEAST_HALF = 2.0**-12, 2.0**-10, 2.0**-9
"""The same for floats of 16 bits, beside whose rounding less of an epsilon shows; float16 has few numbers far below the last."""
_FAR, _FAR_HALF = 128.0, 512.0
"""The greatest absolute value after `FAR`; a kernel must not square in float16 what the reference squares in float32."""
_ENDS = {FAR: (_FAR, _FAR_HALF), MIDDLE: (_FAR, 16.0), LESS: (16.0, 8.0)}
"""The same, and that of float16, of each of them: squares of 16 stay finite in float16, and exp(8) does."""
FARTHER, _FARTHER, _FARTHER_HALF = "farther", 2.0**20, 2.0**15
"""The name of what `FAR` makes of inputs whose elements are only picked, and how far they reach then, and those of float16.

The answer follows a power of two exactly. So a kernel that hides some elements behind 10,000 is wrong, and no rounding is.
"""
_FAR_ONE_SIGN = {FAR: 16.0, MIDDLE: 4.0, LESS: 4.0}
"""What `FAR`, or a lesser move, multiplies tensors of one sign by where none lies around zero: a series ends somewhere."""
_LIFTED, _AXIS = 0.9, 8
"""The place in the range above which the last slice goes, along axes of so many elements or more."""
_SUNK = 0.1
"""The part of the range, from its end below zero, in which a row lies whose exponentials are all 0."""
_ROWS = 128
"""A tensor of 16 bits has so many rows, or none of them is moved there."""
_REST = 0.5
"""What the others are multiplied by then, so that nothing comes near the last."""
_FOLLOWS = 0.02
"""Of the greatest absolute value: outputs that differ by no more follow the inputs' scale; a bias does not matter."""
_ALIKE = {torch.float32: 1e-5, torch.float64: 1e-5}
_ALIKE_HALF = 1e-3
_LONGEST = 10_000
"""Sums (of absolute values, of squares) that differ by less were made equal; longer ones of half precision are so by chance."""
TOLD = {
    UP: "the inputs of this pass that lie around zero were moved upwards within their range, which the task's own do not show",
    LOW: "the inputs of this pass were moved within their range: those around zero below zero, those of one sign nearer to zero",
    HIGH: "the inputs of this pass that lie around zero were moved above zero within their range, and near to it",
    FAR: f"the inputs of this pass that lie around zero were made larger, up to {_FAR:g} ({_FAR_HALF:g} in float16; "
    f"{_FAR_ONE_SIGN[FAR]:g} times as large where all have one sign), "
    "the last slices the largest and the first rows far below zero: exp() may overflow without its maximum, a maximum may begin "
    "at 0, a bound or the last elements may be left out",
}


def skewed(inputs: Any, move: str = UP) -> Any | None:
    """Return inputs of the same layout, moved; None where there are none that can be."""
    found = _skewed(map_tensors(inputs, widened), move)
    return None if found is None else as_given(found, inputs)


def _skewed(inputs: Any, move: str) -> Any | None:
    """The same, where all floats are wide enough to compute with."""
    sides = [_side(tensor) for tensor in tensors_of(inputs)]
    if 0 not in sides and (move not in (LOW, *OF_FAR) or not {-1, 1} & {*sides}):
        return None
    if move == MIDDLE and not has_half(inputs):
        return None  # those of other dtypes were as large
    # Beside a tensor around zero, one of one sign may belong to it: a scale, the deviations of its rows.
    wanted = {0} if 0 in sides else {-1, 1}
    left = iter(sides)
    changed = False

    def one(tensor: torch.Tensor) -> torch.Tensor:
        nonlocal changed
        side = next(left)
        places = _places(tensor, side, move) if side in wanted else None
        changed = changed or places is not None
        if places is None:
            return same_layout(tensor)
        if move not in OF_FAR:
            return _written(tensor, *places)
        return _risen(_written(tensor, *places)) if side else _lifted(_written(tensor, *places), *places[:2])

    found = map_tensors(inputs, one)
    return found if changed else None


def movable(inputs: Any, *, scales: bool = False) -> list[bool]:
    """Return by tensor whether other values within its range may stand there; a scale beside a tensor around zero stays."""
    sides = [_side(tensor) for tensor in tensors_of(inputs)]
    return [side is not None and (side == 0 or 0 not in sides or scales) for side in sides]


def of_one_sign(inputs: Any) -> str:
    """Return what to say of float inputs of one sign; "" where there are none."""
    sides = {position: _side(tensor) for position, tensor in enumerate(tensors_of(inputs))}
    words = {1: "no negative element", -1: "no positive element"}
    said = [f"tensor {position} has {words[side]}" for position, side in sides.items() if side]
    return f"of the inputs {', '.join(said[:4])}: what a kernel does with such is not tested" if said else ""


def of_both_signs(inputs: Any) -> bool:
    """Whether a float input holds numbers of both signs."""
    floats = [widened(tensor) for tensor in tensors_of(inputs) if tensor.is_floating_point()]
    return any(bool((tensor > 0).any() and (tensor < 0).any()) for tensor in floats)


def larger(tensor: torch.Tensor, move: str = FAR) -> float:
    """Return by how much `FAR`, or a lesser move, multiplies a tensor around zero."""
    most, most_half = _ENDS[move]
    return (most_half if tensor.dtype is torch.float16 else most) / float(tensor.abs().max())


def _multiplied(tensor: torch.Tensor, move: str) -> float:
    """Return by how much `FAR`, or a lesser move, multiplies a tensor of one sign; what is large already stays."""
    return times if (times := _FAR_ONE_SIGN[move]) * float(tensor.abs().max()) <= _FAR else 1.0


def farther(inputs: Any) -> tuple[str, Any | None]:
    """Return what larger inputs than `FAR` makes are called, by which power of two they are so, and them; None: none can be."""
    tensors = tensors_of(infinite.filled(inputs))
    sides = [_side(tensor) for tensor in tensors]
    wanted = {0} if 0 in sides else {-1, 1}
    most = max((float(one.abs().max()) for one, side in zip(tensors, sides, strict=True) if side in wanted), default=0.0)
    power = math.floor(math.log2((_FARTHER_HALF if has_half(inputs) else _FARTHER) / most)) if most else 0
    if power < 1:
        return FARTHER, None
    left = iter(sides)
    return f"{FARTHER} {power}", map_tensors(inputs, lambda tensor: tensor * (2.0**power if next(left) in wanted else 1))


def has_half(inputs: Any) -> bool:
    """Whether there is a float16: its squares overflow soon, also where the answer only follows the inputs' scale."""
    return any(tensor.dtype is torch.float16 for tensor in tensors_of(inputs))


def scaled(inputs: Any) -> tuple[Any, float]:
    """Return the inputs that `FAR` moves, multiplied only, and by how much the first of them is."""
    tensors = tensors_of(infinite.filled(inputs))
    sides = [_side(tensor) for tensor in tensors]
    pairs = zip(tensors, sides, strict=True)
    factors = [
        larger(tensor) if side == 0 else _multiplied(tensor, FAR) if side and 0 not in sides else 1.0 for tensor, side in pairs
    ]
    factor = next((factor for factor in factors if factor >= 2.0), 1.0)
    left = iter(factors)
    return map_tensors(inputs, lambda tensor: tensor * factor if next(left) >= 2.0 else tensor), factor


def follows_scale(before: Any, after: Any, factor: float) -> bool:
    """Whether larger inputs change what a reference returns by a power of their factor alone: then no rounding is magnified."""
    return all(_follows(*pair, factor) for pair in zip(tensors_of(before), tensors_of(after), strict=True))


def follows_exactly(before: Any, after: Any, power: int) -> bool:
    """Whether inputs that are larger by a power of two change what a reference returns by such powers, and by nothing else."""
    pairs = zip(tensors_of(before), tensors_of(after), strict=True)
    return all(
        any(torch.equal(one * 2.0 ** (power * times) if times else one, other) for times in (0, 1, 2)) for one, other in pairs
    )


def _follows(before: torch.Tensor, after: torch.Tensor, factor: float) -> bool:
    if not before.numel() or not before.is_floating_point():
        return bool((before == after).all())
    before, after = before.double(), after.double()
    finite = before.isfinite() & after.isfinite()
    if not torch.equal(before[~finite], after[~finite]) or not bool(finite.any()):
        return False
    before, after = before[finite], after[finite]
    most = _FOLLOWS * float(after.abs().max())
    return any(float((before * factor**power - after).abs().max()) <= most for power in (0, 1, 2))


def _side(tensor: torch.Tensor) -> int | None:
    """Return 0 for a tensor around zero, 1 or -1 for one of that sign; None for what no continuous distribution drew freely."""
    if not tensor.is_floating_point() or tensor.element_size() < 2 or tensor.numel() < _LEAST:
        return None
    below, above = int((tensor < 0).sum()), int((tensor > 0).sum())
    if min(below, above) and min(below, above) <= _SHARE * (below + above):
        return None
    if not bool(torch.isfinite(tensor).all()) or bool((tensor == tensor.round()).all()):
        return None
    if len(set(tensor.reshape(-1)[: _LEAST**2].tolist())) < _LEAST or is_normalised(tensor):
        return None
    return 0 if below and above else 1 if above else -1


def is_normalised(tensor: torch.Tensor) -> bool:
    """Whether the sums of absolute values or squares along an axis, or over all, are alike: probabilities, unit vectors."""
    alike = _ALIKE.get(tensor.dtype, _ALIKE_HALF)
    tensor = once(tensor)
    wide = tensor.to(torch.float64 if tensor.dtype is torch.float64 else torch.float32)
    for power in (1, 2):
        powers = wide.abs() ** power
        if abs(float(powers.sum(dtype=torch.float64)) - 1.0) <= alike:
            return True
        for axis, size in enumerate(tensor.shape):
            if size == 1 or size == tensor.numel() or (alike == _ALIKE_HALF and size > _LONGEST):
                continue
            low, high = (float(end) for end in torch.aminmax(powers.sum(axis, dtype=torch.float64)))
            if high - low <= alike * high:
                return True
    return False


def _places(tensor: torch.Tensor, side: int | None, move: str) -> tuple[float, float, float] | None:
    """Return the ends that a tensor's range gets, and the power its places are raised to; None where it stays as it is."""
    low, high = (float(end) for end in torch.aminmax(tensor))
    if side == 0:
        small = _smaller(tensor.dtype, high)
        if move in OF_FAR:
            far = larger(tensor, move)
            return (far * low, far * high, 1.0) if far >= 2.0 else None
        ends = {
            UP: (low, high, _POWER),
            LOW: (low, _MARGIN * low, 1.0),
            HIGH: (small * _MARGIN * high, small * high, 1.0),
        }
        return ends[move]
    if move in OF_FAR:
        times = _multiplied(tensor, move)
        return (times * low, times * high, 1.0) if times > 1.0 else None
    near = low if side == 1 else high  # the end by zero
    part = max(_NEAR, 2 * abs(near) / (high - low))  # a mean far above the deviation would be hard to compute with
    if part >= 0.5:
        return None
    far = near + part * (high - near if side == 1 else low - near)
    return (near, far, 1.0) if side == 1 else (far, near, 1.0)


def _smaller(dtype: torch.dtype, high: float) -> float:
    """Return what `HIGH` shrinks a tensor of this upper end by."""
    if dtype is torch.float16:
        return min(_SMALL, max(_SMALL_HALF, _LEAST_HALF / high))
    return _SMALL_BFLOAT if dtype is torch.bfloat16 else _SMALL


def _written(tensor: torch.Tensor, begin: float, end: float, power: float) -> torch.Tensor:
    moved = same_layout(tensor)
    memory = memory_of(moved)
    wide = memory.to(torch.float64 if tensor.dtype is torch.float64 else torch.float32)
    low, high = (float(end) for end in torch.aminmax(tensor))
    places = ((wide - low) / (high - low)).clamp(0.0, 1.0) ** power
    found = begin + (end - begin) * places
    memory.copy_(found if is_sorted(tensor) else torch.where(wide == 0, wide, found))
    return moved


def sunk(moved: torch.Tensor, least: float) -> torch.Tensor:
    """Return a tensor with the first row along each axis just above a number far below zero; zeros stay.

    Few numbers of 16 bits lie there, so elements become equal. One that is first then is another; a row of many is let pass.
    """
    for axis, size in enumerate(moved.shape):
        if _AXIS <= size < moved.numel() and (moved.element_size() > 2 or moved.numel() >= _ROWS * size):
            row = moved[tuple(slice(None) if at == axis else 0 for at in range(moved.dim()))]
            low, high = torch.aminmax(row.double())
            places = (row.double() - low) / (high - low).clamp_min(torch.finfo(torch.float64).tiny)
            row.copy_(torch.where(row != 0, (least * (1.0 - _SUNK * places)).to(row.dtype), row))
    return moved


def _risen(moved: torch.Tensor) -> torch.Tensor:
    """Return a tensor of one sign whose first slice along each axis is far from zero: a least element of it may be, too."""
    end = moved.max() if bool((moved >= 0).all()) else moved.min()
    for axis, size in enumerate(moved.shape if not is_ordered(moved) else ()):
        if _AXIS <= size < moved.numel():
            row = moved.select(axis, 0)
            row.copy_(torch.where(row != 0, (row + end) / 2, row))
    return moved


def _lifted(moved: torch.Tensor, begin: float, end: float) -> torch.Tensor:
    """Return a tensor with the last slices along its axes far above the rest; zeros stay.

    They reach the greatest absolute value, though the range's lower end may lie farther from zero than its upper one:
    exp() overflows above 88 in float32, and 128 times the ratio of the ends may be less.
    """
    most = max(-begin, end)
    last = torch.zeros(moved.shape, dtype=torch.bool, device=moved.device)
    for axis, size in enumerate(moved.shape):
        if size >= _AXIS:
            last.select(axis, -1).fill_(True)
    if is_ordered(moved) or memory_of(moved).numel() != moved.numel() or not bool(last.any()):
        memory = memory_of(moved)  # both sides to the same distance from zero: the order, and what is alike, stays
        memory.copy_(torch.where(memory > 0, memory * (most / end), memory * (most / -begin)))
        return moved
    places = (moved.double() - begin) / (end - begin)
    high = most - (end - begin) * (1.0 - _LIFTED) * (1.0 - places)
    return sunk(moved.copy_(torch.where(last & (moved != 0), high.to(moved.dtype), moved * _REST)), -most)
