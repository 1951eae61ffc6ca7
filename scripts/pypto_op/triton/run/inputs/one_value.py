"""Inputs that hold one value throughout: a mask of ones, a bias of zeros, lengths that are all full, a factor of 1.0.

A kernel that leaves such an input out is right for the task's own values alone. So one pass gives them others, where the
reference takes them: masks turn off some elements, whole numbers only become smaller (a smaller index or length is a valid
one), and floats vary around what they were, in a list or a dict, too. Whole numbers and flags that are no tensors stay: they may
stand for shapes. So do whole numbers whose sum is the size of an axis: they split that axis into parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from pypto_op.triton.run.inputs import fixed
from pypto_op.triton.run.inputs.packing import map_leaves, memory_of, once, same_layout, tensors_of

OTHER, TENSORS = "other", "other tensors"
"""The names of this move, beside those of `skewed`; the second leaves all numbers that are no tensors."""
_TURNED = 0.25
"""Of a mask's elements so many are turned."""
_MOST = 4
_FEW = 4
TOLD = (
    "inputs that hold one value throughout in the task (ones, zeros, full lengths, a number), or are the same for every seed "
    "(a mask), had other values in this pass"
)


def ways(inputs: Any, seed: int, same: Sequence[bool] = ()) -> Iterator[tuple[str, Any]]:
    """Yield what the move is called and inputs: all numbers are others, then all but one, which may tell a size, then none.

    Positions that follow one another have a gap in the first of them alone, which the reference may not take.
    """
    numbers = floats_of(inputs)
    if any(stays and fixed.are_consecutive(once(tensor)) for tensor, stays in zip(tensors_of(inputs), same, strict=False)):
        yield f"{OTHER} with gaps", varied(inputs, seed, same, gaps=True)
    yield OTHER, varied(inputs, seed, same)
    for number in numbers[:_MOST] if len(numbers) > 1 else ():
        yield f"{OTHER} but {number}", varied(inputs, seed, same, stay=[number])
    if numbers:
        yield TENSORS, varied(inputs, seed, same, stay=numbers)


def floats_of(inputs: Any) -> list[str]:
    """Return the paths of floats that are no tensors."""
    found: list[str] = []
    map_leaves(inputs, lambda path, value: found.append(path) if type(value) is float else None)
    return found


def varied(inputs: Any, seed: int, same: Sequence[bool] = (), *, stay: Sequence[str] = (), gaps: bool = False) -> Any | None:
    """Return inputs of the same layout, those of one value with other values; None where there are none.

    Args:
        inputs: stay as they are.
        seed: draws the values.
        same: which tensors are the same for every seed; they get others, too, where that is possible (`fixed`).
        stay: the paths of floats that keep their values.
        gaps: positions that follow one another get a gap.
    """
    draws = torch.Generator().manual_seed(seed)
    sizes, among = _sizes(inputs), tensors_of(inputs)
    stays = iter(same)
    changed = False

    def tensor(given: torch.Tensor) -> torch.Tensor:
        nonlocal changed
        if next(stays, False) and (mixed := fixed.other(given, draws, gaps=gaps, among=among)) is not None:
            changed = True
            return mixed
        copy = same_layout(given)
        if _holds_one(given, sizes):
            changed = True
            write(copy, given, draws)
        return copy

    def number(given: float) -> float:
        nonlocal changed
        changed = True
        place = float(torch.rand((), generator=draws))
        return given * (0.5 + place) if given else 0.25 + 0.5 * place

    def leaf(path: str, value: Any) -> Any:
        if type(value) is float and path not in stay:
            return number(value)
        return tensor(value) if isinstance(value, torch.Tensor) else value

    found = map_leaves(inputs, leaf)
    return found if changed else None


def found(inputs: Any) -> bool:
    """Whether `varied` would change anything."""
    sizes = _sizes(inputs)
    return bool(floats_of(inputs)) or any(_holds_one(tensor, sizes) for tensor in tensors_of(inputs))


def untested(inputs: Any) -> str:
    """Return what to say where the reference does not take other values."""
    sizes = _sizes(inputs)
    named = [f"tensor {position}" for position, tensor in enumerate(tensors_of(inputs)) if _holds_one(tensor, sizes)]
    if not named:
        return ""
    more = " and others" if len(named) > _MOST else ""
    return f"of the inputs {', '.join(named[:_MOST])}{more} of one value: the reference took no other values, so none were tested"


def _sizes(inputs: Any) -> set[int]:
    return {size for tensor in tensors_of(inputs) for size in tensor.shape}


def _holds_one(tensor: torch.Tensor, sizes: set[int]) -> bool:
    if not tensor.numel() or tensor.is_complex() or (tensor.element_size() < 2 and tensor.is_floating_point()):
        return False
    seen = once(tensor)
    first = seen[(0,) * seen.dim()]
    few = seen[tuple(slice(_FEW) for _ in seen.shape)]  # the rest of what was drawn need not be looked at
    if not bool((few == first).all()) or not bool((seen == first).all()):  # NaN, too
        return False
    if tensor.is_floating_point():
        return bool(torch.isfinite(first))
    if tensor.dtype is torch.bool:
        return tensor.numel() > 1
    return tensor.numel() > 1 and int(first) > 0 and int(first) * tensor.numel() not in sizes


def write(copy: torch.Tensor, given: torch.Tensor, draws: torch.Generator) -> None:
    """Write other values into the copy of a tensor that holds one: a mask loses some, numbers become smaller, floats vary."""
    memory = memory_of(copy)
    first = given.reshape(-1)[0]
    place = torch.rand(memory.shape, generator=draws).to(memory.device)
    if _is_mask(given, first):
        memory.copy_(torch.where(place < _TURNED, 1 - first.to(torch.int8), first.to(torch.int8)))
    elif not given.is_floating_point():
        memory.copy_(first - (place * (torch.div(first + 1, 2, rounding_mode="floor") + 1)).to(given.dtype))
    else:
        memory.copy_(first * (0.5 + place) if bool(first) else place - 0.5)
        return
    once(copy).select(-1, 0).fill_(first)  # no row of a mask is empty, and the greatest length stays


def _is_mask(given: torch.Tensor, first: torch.Tensor) -> bool:
    """Whether a tensor of one value is a mask: a vector of ones is rather a weight."""
    return given.dtype is torch.bool or (given.is_floating_point() and given.dim() > 1 and float(first) == 1.0)
