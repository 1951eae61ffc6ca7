"""Numbers that a task gives to its constructor: a kernel that has one by heart is right for that one alone.

A slope, a temperature or a factor is a name in the reference and a number in such a kernel. So one call is judged with other
fractions. Whole numbers mostly shape a model (two experts of eight, groups), and a kernel may be written for them: what is wrong
with others is only said. Sizes, axes and flags stay.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch

from pypto_op.triton.run.inputs import skewed, whole

MOVE, FAR = "constructor", "constructor far"
"""The names of these moves, beside those of `skewed`: on the task's own inputs, and on the farthest, where bounds are reached."""
INPUTS = {MOVE: "", FAR: skewed.FAR}
"""By these moves, that of the inputs."""
Given = tuple[list[Any], dict[str, Any]]
"""Positional arguments, and those by name."""
Number = tuple[str, float, str]
"""Where it stands among the arguments (a position or a name), its value, and the parameter's name."""
_MOST, _MOST_WHOLE = 4, 2


def found(given: Given, kind: Callable[..., Any], tensors: Iterable[torch.Tensor]) -> list[Number]:
    """Return the numbers that may be others: fractions, and whole numbers that are no size of these tensors, no axis, no flag."""
    try:
        names = [*inspect.signature(kind).parameters]
    except (TypeError, ValueError):
        names = []
    places = [(str(at), value, names[at] if at < len(names) else "") for at, value in enumerate(given[0])]
    places += [(name, value, name) for name, value in given[1].items()]
    sizes = whole.sizes_of(tensors)
    fractions = [number for number in places if type(number[1]) is float][:_MOST]
    whole_ones = [number for number in places if type(number[1]) is int and not whole.may_be_fixed(number[1], number[2], sizes)]
    return fractions + whole_ones[:_MOST_WHOLE]


def others(value: float) -> list[float]:
    """Return what may stand in the place of a number, the likeliest first; a part of 1 stays one."""
    if isinstance(value, int):
        return [*map(float, whole.others(value))]
    return [1.5 * value, 0.75 * value] if abs(value) >= 1.0 else [0.75 * value, 0.25 * value] if value else [0.5, -0.5]


def together(numbers: Iterable[Number]) -> dict[str, list[float]]:
    """Return by place other numbers for all of these; those that are equal in the task are not."""
    changes: dict[str, list[float]] = {}
    turns: Counter[float] = Counter()
    for place, value, _ in numbers:
        some = others(value)
        changes[place] = [some[turns[value] % len(some)]]
        turns[value] += 1
    return changes


def alike(given: Iterable[Number], number: Number) -> list[Number]:
    """Return the other fractions of that value: a kernel may take one of them for the other."""
    return [other for other in given if other[0] != number[0] and other[1] == number[1] and isinstance(other[1], float)]


def moved(given: Given, changes: Mapping[str, Sequence[float]]) -> Given:
    """Return the arguments with other numbers in those places."""
    positional = [_other(value, changes.get(str(at))) for at, value in enumerate(given[0])]
    return positional, {name: _other(value, changes.get(name)) for name, value in given[1].items()}


def taken_for(number: Number, another: Number) -> str:
    """Return what is said of a kernel that takes one number for another, which is equal in the task."""
    one, two = number[2] or number[0], another[2] or another[0]
    return f"argument {one} of the constructor is taken for {two}, which is {number[1]:g} in the task, too"


def told(number: Number, other: float, *, ignored: bool) -> str:
    """Return what is said of a kernel that is wrong with another number."""
    place, value, name = number
    what = f"argument {name or place} of the constructor"
    if ignored:
        return f"{what} is ignored: with {other:g} in the place of {value:g} the answer is still that for {value:g}"
    return f"with {other:g} in the place of {value:g} for {what} the implementation is wrong; only {value:g} was tested"


def _other(value: Any, change: Sequence[float] | None) -> Any:
    return value if change is None else type(value)(change[0])
