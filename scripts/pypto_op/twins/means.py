"""Squares of distances to a mean, as a kernel that merges the means of tiles has them.

A variance may be taken in two walks, or in one that merges mean and squares of each tile with those before it (Chan, Golub and
LeVeque, "Algorithms for computing the sample variance", 1983). In two walks an error of the mean moves all distances alike and
cancels in the sum of their squares. In one walk each tile has a mean of its own, rounded by itself, so the error counts once:
relative to the variance it is a rounding times mean / deviation. The sum of plain squares without a mean has the square of that.

A distance stays what it is, and remembers what it would be beside the mean of its tile. Only its square, or its product with
another distance, is made of that.
"""

from __future__ import annotations

from typing import Any

import torch

from pypto_op.twins.neighbours import SPREAD

TILE = 16
"""So many neighbours share the rounding of their mean; the error of a sum of squares does not depend on it."""

ROUNDINGS = 2.0
"""By how many roundings of the mean a distance moves: a mean that is merged tile by tile is rounded once for each."""

_MOVED = "_pypto_op_moved"
"""Attribute of a float32 tensor that is a distance: what it would be, and its version when that was so."""

aten = torch.ops.aten


class Means:
    """Which tensors of a running golden are means that were rounded, or views of one."""

    def __init__(self) -> None:
        self._kept: dict[int, torch.Tensor] = {}  # by place in memory, which stays theirs as long as they are kept

    def keep(self, mean: torch.Tensor, total: torch.Tensor, count: Any) -> torch.Tensor:
        """Return `mean`, total / count, and know it from now on.

        A whole total that leaves no remainder is no mean: it may be a count or a place, and both are exact in every kernel.
        """
        if mean.dtype == torch.float32:
            wide = total.to(torch.float64)
            exact = mean.to(torch.float64) * (count.to(torch.float64) if isinstance(count, torch.Tensor) else count) == wide
            if not bool((exact & (wide == wide.round())).all()):
                self._kept[mean.untyped_storage().data_ptr()] = mean
        return mean

    def distance(self, found: torch.Tensor, mean: Any, salt: int) -> torch.Tensor:
        """Return `found`, a value - mean, which remembers what it is beside the mean of its tile where `mean` is one.

        Args:
            found: float32.
            mean: what was taken off, a tensor that has fewer elements than `found`, or a number.
            salt: another one draws other signs.
        """
        if not isinstance(mean, torch.Tensor) or found.dtype != torch.float32 or not found.numel():
            return found
        known = self._kept.get(mean.untyped_storage().data_ptr())
        if known is None or known.numel() >= found.numel():
            return found
        tiles = torch.arange(found.numel(), dtype=torch.int64).div(TILE, rounding_mode="floor")
        signs = ((tiles + salt) * SPREAD >> 16 & 1).mul(2.0).sub(1.0).reshape(found.shape)
        return _remember(found, found + signs * ROUNDINGS * torch.finfo(torch.float32).eps * mean.abs())


def product(found: torch.Tensor, left: Any, right: Any) -> torch.Tensor:
    """Return `found`, left * right; where both are distances, the product of what they would be."""
    one, two = _moved(left), _moved(right)
    if one is None and two is None:
        return found
    moved = (left if one is None else one) * (right if two is None else two)
    return _remember(found, moved) if one is None or two is None else moved


def power(base: torch.Tensor, exponent: Any) -> torch.Tensor:
    """Return base ** exponent; the square of a distance is that of what it would be."""
    moved = _moved(base) if exponent == 2 else None
    return aten.pow.Tensor_Scalar(base if moved is None else moved, exponent)  # type: ignore[no-any-return]


def chosen(condition: torch.Tensor, one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Return where(condition, one, other), a distance where one of the two is."""
    found: torch.Tensor = aten.where.self(condition, one, other)
    first, second = _moved(one), _moved(other)
    if first is None and second is None:
        return found
    moved = aten.where.self(condition, one if first is None else first, other if second is None else second)
    return _remember(found, moved)


def _remember(found: torch.Tensor, moved: torch.Tensor) -> torch.Tensor:
    if found.dtype == moved.dtype:
        setattr(found, _MOVED, (moved, found._version))
    return found


def _moved(value: Any) -> torch.Tensor | None:
    """Return what a distance would be; None for another value, and where a golden has written into it since."""
    moved, version = getattr(value, _MOVED, (None, 0))
    return moved if moved is not None and value._version == version else None
