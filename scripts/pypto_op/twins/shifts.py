"""A mean as a kernel has it that takes a value off first: x0 + mean(x - x0), weighted or not.

The two are the same over the real numbers. Far from 0 the second rounds less. Where values lie on both sides of 0 it rounds more,
by a rounding of x0, which shows as soon as the mean is near 0 beside it. Who must keep digits of a variance shifts so, and hands
out the mean that comes of it.

The mean of squares is left as it is: nobody shifts it, and its error would count in each normalised element.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import torch

from pypto_op.twins import mixes

_LATELY = 2
"""A golden divides soon after it has added up. The terms of so many sums are kept; those of all would fill memory."""

_IS_THE_SUM = 16.0
"""So many roundings may lie between the sum of the weights and what a golden divides by."""

_SQUARE = "_pypto_op_square"
"""Attribute of a tensor that is a power, or a product with one."""

Fold = Callable[[torch.Tensor], torch.Tensor]


def powered(found: torch.Tensor) -> torch.Tensor:
    """Return `found`, a power, which remembers that."""
    setattr(found, _SQUARE, True)
    return found


def multiplied(found: torch.Tensor, left: Any, right: Any) -> torch.Tensor:
    """Return `found`, left * right, which remembers whether it is a square, or one with a weight."""
    return powered(found) if left is right or getattr(left, _SQUARE, False) or getattr(right, _SQUARE, False) else found


class Shifts:
    """The last sums of a running golden, and the means that become of them."""

    def __init__(self) -> None:
        self._sums: deque[tuple[torch.Tensor, torch.Tensor, Sequence[int], tuple[int, int]]] = deque(maxlen=_LATELY)

    def keep(self, total: torch.Tensor, terms: torch.Tensor, dims: Sequence[int]) -> None:
        """Know that `total` is the sum of `terms` over `dims`."""
        if total.dtype == terms.dtype == torch.float32:
            self._sums.append((total, terms, dims, (total._version, terms._version)))

    def mean(self, found: torch.Tensor, total: torch.Tensor, count: Any, fold: Callable[..., torch.Tensor]) -> torch.Tensor:
        """Return `found`, total / count, as a mean that was shifted by its first value; unchanged where it is no mean.

        Args:
            found: float32.
            total: what `keep` knows, or another sum.
            count: a number or a tensor that broadcasts against `total`; it may be the sum of the weights.
            fold: sums a tensor over axes: fold(terms, dims, keepdim).
        """
        known = [
            (terms, dims)
            for kept, terms, dims, versions in self._sums
            if kept is total and versions == (total._version, terms._version)  # a golden may have written into one of them
        ]
        if not known or found.shape != total.shape:
            return found
        terms, dims = known[0]
        keepdim = total.dim() == terms.dim()
        for weight, value in _ways(terms):
            weights = _weights(weight, terms, lambda side: fold(side, dims, keepdim), dims)
            is_mean = (weights - count).abs() <= _IS_THE_SUM * torch.finfo(torch.float32).eps * abs(weights)
            if not bool(is_mean.any()):
                continue
            counted = value if weight is None else torch.where(weight != 0.0, value, 0.0)
            first = _first(counted.expand(terms.shape), dims)
            away = value - first if weight is None else weight * (value - first)
            base = first.reshape(total.shape)
            form = base + fold(away, dims, keepdim) / count
            size = base.abs() + found.abs()
            return torch.where(is_mean.expand(found.shape), mixes.bounded(form, found, size), found)
        return found


def _ways(terms: torch.Tensor) -> list[tuple[torch.Tensor | None, torch.Tensor]]:
    """Return what may be weight and value of the terms; None for no weight, [] for squares."""
    if getattr(terms, _SQUARE, False):
        return []
    pairs = [pair for pair in mixes.ways(terms) if all(isinstance(side, torch.Tensor) for side in pair)]
    still = [pair for pair in pairs if pair[1].dtype == torch.float32 and torch.equal(terms, pair[0] * pair[1])]
    return [*still, (None, terms)]


def _weights(weight: torch.Tensor | None, terms: torch.Tensor, fold: Fold, dims: Sequence[int]) -> torch.Tensor:
    """Return the sum of the weights, or how many terms a sum has; it broadcasts against the total."""
    if weight is not None:
        return fold(weight.to(torch.float32).expand(terms.shape))
    count = 1
    for dim in dims:
        count *= terms.shape[dim]
    return torch.tensor(float(count))


def _first(value: torch.Tensor, dims: Sequence[int]) -> torch.Tensor:
    """Return the first or the last value of each sum, with axes of one element in the place of `dims`.

    A walk begins at one of the two. The greater one rounds more, and the other may be the 0 of a value that counts nowhere.
    """
    one = two = value
    for dim in dims:
        one, two = one.narrow(dim, 0, 1), two.narrow(dim, two.shape[dim] - 1, 1)
    return torch.where(one.abs() >= two.abs(), one, two)
