"""What a comparison of two tensors never met: zeros on both sides, elements that are close, one that stands twice in a row."""

from __future__ import annotations

from typing import Any

import torch

_FEW = 5
"""A number that is compared with what was counted is mostly less: one of a group, two of a pair."""

_SHARE = 8
"""One element of so many stands twice, or none seems to: a single pair may lie where another input leaves it out."""

KEEP_SIGNS = frozenset(("abs", "neg", "sign", "sgn", "mul", "_to_copy"))
"""They are zero just where one of what they are given is: a sign of a product of differences tells of each of them."""


def are_never_zero(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether a comparison never has zeros on both sides; other elements that are equal show rounding, too."""
    return not bool(((one == 0) & (other == 0)).any())


def is_never_twice(one: torch.Tensor, other: torch.Tensor) -> bool | None:
    """Whether what stands for a row is hardly ever equal to several of its elements; None where nothing stands for a row."""
    whole, part = (one, other) if one.numel() > other.numel() else (other, one)
    equal = whole == part
    if whole.shape != equal.shape and equal.numel():
        return _are_never_twice(equal, one, other)
    if not equal.numel():
        return None
    axes = [axis for axis in range(-part.dim(), 0) if part.shape[axis] == 1 < equal.shape[axis]]
    axes += range(-equal.dim(), -part.dim())
    return _are_few(equal.sum(axes) > 1) if axes else None


def stands_for_rows(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether one of two tensors stands for rows of the other: no pair of all elements is compared."""
    return (one == other).shape in (one.shape, other.shape)


def _are_never_twice(equal: torch.Tensor, one: torch.Tensor, other: torch.Tensor) -> bool | None:
    """Whether of all pairs of two tensors few elements have several that are equal to them, on either side (ranks, a join)."""
    sides = [[axis for axis in range(-part.dim(), 0) if part.shape[axis] == 1 < equal.shape[axis]] for part in (one, other)]
    if not all(sides):
        return None
    return any(_are_few(equal.sum(axes) > 1) for axes in sides)


def _are_few(found: torch.Tensor) -> bool:
    return _SHARE * int(found.sum()) < found.numel()


def are_never_equal_on_a_grid(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether no element of a tensor of multiples of a half is exactly that of another one, zeros left out."""
    return not bool(((one == other) & (one != 0)).any())


def is_never_count(given: torch.Tensor, number: Any) -> bool | None:
    """Whether no element of what was counted is exactly a small number; None where nothing was counted."""
    if type(number) not in (int, float) or number not in range(_FEW) or given.numel() < 2 or given.dtype is torch.bool:
        return None
    wide = given.double()
    return not bool((given == number).any()) if bool(((wide >= 0) & (wide == wide.round())).all()) else None


def is_never_close(name: str, apart: torch.Tensor, out: torch.Tensor) -> bool:
    """Whether a comparison of a difference with a bound never found one below it that is not zero."""
    near = out if name in ("lt", "le") else ~out
    return not bool((near & (apart != 0)).any())


def are_greatest_alike(given: torch.Tensor, greatest: torch.Tensor) -> bool:
    """Whether neighbours that are equal, and not zero, are the greatest of a pool's window: zeros hide behind thresholds."""
    after = given[..., 1:]
    return bool(torch.isin(after[(given.diff(dim=-1) == 0) & (after != 0)], greatest).any())
