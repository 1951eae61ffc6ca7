"""Whole numbers and flags among the arguments: a kernel that leaves one out is right while the task has one value for it.

The number may stand for a shape or an axis, so not every kernel must take another one. But a kernel whose answer for another
number is still the right one for the task's own ignores the argument. That is wrong. Only said is it where the argument names an
axis or is a flag (a kernel may be written for the last axis), where it is a size (a kernel may ask the tensor), and where the
answer is wrong in another way.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch

from pypto_op.triton.run.inputs.packing import map_leaves, same_layout, tensors_of

MOVE = "whole"
"""The name of this move, beside those of `skewed`."""
_AXES = ("dim", "axis", "axes")
_MOST = 4
Number = tuple[str, int, str, bool]
"""Path among the arguments (`1`, `2/limit`), value, name, and whether a kernel may know the task's own value alone."""


def found(inputs: list[Any], forward: Callable[..., Any]) -> list[Number]:
    """Return the whole numbers and flags among the arguments of a case, tensors of one whole number included."""
    try:
        names = [*inspect.signature(forward).parameters]
    except (TypeError, ValueError):
        names = []
    sizes = sizes_of(tensors_of(inputs))
    numbers: list[Number] = []

    def note(path: str, leaf: Any) -> None:
        value = _value(leaf)
        if value is not None:
            name = _called(path, names)
            numbers.append((path, value, name, may_be_fixed(value, name.rpartition(".")[2], sizes)))

    map_leaves(inputs, note)
    return numbers[:_MOST]


def _called(path: str, names: list[str]) -> str:
    """Return what an argument is called: the parameter, and after dots where within it the argument stands."""
    first, *within = path.split("/")
    return ".".join([names[int(first)] if int(first) < len(names) else "", *within])


def always(cases: Iterable[list[Number]]) -> list[Number]:
    """Return the numbers that are the same in each of the cases."""
    first, *rest = cases
    return [number for number in first if all(number in numbers for numbers in rest)]


def others(value: int) -> list[int]:
    """Return what may stand in the place of a number, the likeliest first."""
    return [not value] if isinstance(value, bool) else [value + 1, value - 1, 2 * value]


def moved(inputs: list[Any], place: str, value: int) -> Any:
    """Return the arguments with that number at that path."""

    def change(path: str, leaf: Any) -> Any:
        if path != place:
            return leaf
        return same_layout(leaf).fill_(value) if isinstance(leaf, torch.Tensor) else type(leaf)(value)

    return map_leaves(inputs, change)


def shows(before: Any, after: Any) -> bool:
    """Whether a reference's answer has the same structure as before and other values."""
    pairs = list(zip(tensors_of(before), tensors_of(after), strict=False))
    same = len(tensors_of(before)) == len(tensors_of(after)) and all(a.shape == b.shape and a.dtype == b.dtype for a, b in pairs)
    return same and not all(torch.equal(a, b) for a, b in pairs)


def told(number: Number, other: float, *, ignored: bool) -> str:
    """Return what is said of a kernel that is wrong with another number."""
    path, value, name, _ = number
    what = f"argument {path.partition('/')[0]}{f' ({name})' if name else ''}"
    if ignored:
        return f"{what} is ignored: with {other} in the place of {value} the answer is still that for {value}"
    return f"with {other} in the place of {value} for {what} the implementation is wrong; only {value} was tested"


def may_be_fixed(value: int, name: str, sizes: set[int]) -> bool:
    """Whether a kernel may know that value alone: it may be a size, an axis or a flag."""
    return isinstance(value, bool) or value < 0 or value in sizes or name.lower().startswith(_AXES)


def sizes_of(tensors: Iterable[torch.Tensor]) -> set[int]:
    """Return the sizes of tensors' axes, and of axes that follow one another together."""
    return {size for tensor in tensors for size in _sizes(tensor.shape)}


def _sizes(shape: Sequence[int]) -> Iterator[int]:
    """Yield the sizes of axes, and of axes that follow one another together."""
    for first in range(len(shape)):
        for last in range(first + 1, len(shape) + 1):
            if (size := math.prod(shape[first:last])) > 1:
                yield size


def _value(given: Any) -> int | None:
    if isinstance(given, torch.Tensor):
        whole = given.numel() == 1 and not given.is_floating_point() and not given.is_complex()
        return int(given) if whole and given.dtype is not torch.bool else None
    return given if type(given) in (int, bool) else None
