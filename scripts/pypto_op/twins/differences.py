"""A sum of differences, sum(p * (a - b)), as a kernel with two sums has it: sum(p * a) - sum(p * b).

The two are the same over the real numbers. In float32 the second rounds two totals that may be far larger than their difference:
a divergence of distributions that nearly agree is what is left of two entropies.

So have differences of differences, (a - b) - (c - d): a kernel may begin with another pair of the four, and where they are large
and what is left is small, the few elements in which that shows are right in the golden by luck.

It counts where a and b have the sum's own shape and memory. A mean that is taken off a row has neither, and a kernel that squares
first and takes the mean off later loses what SPEC.md asks for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from pypto_op.twins import mixes


def remembered(found: torch.Tensor, left: Any, right: Any) -> torch.Tensor:
    """Return `found`, left - right, which remembers both where they are float32 tensors of its shape."""
    if found.dtype == torch.float32 and all(_whole(side, found.shape) for side in (left, right)):
        setattr(found, mixes.TERMS, (mixes.bare(left), mixes.bare(right)))
    return found


def apart(terms: torch.Tensor, fold: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor | None:
    """Return the sum of `terms` as the difference of two sums; None where they are no differences.

    Args:
        terms: float32, what is summed.
        fold: sums a tensor of that shape.
    """
    pair = _pair(terms)
    if pair is None:
        return None
    one, two = (fold(side) for side in pair)
    return mixes.bounded(one - two, fold(terms), one.abs() + two.abs())


def regrouped(found: torch.Tensor, left: Any, right: Any, turn: int) -> torch.Tensor:
    """Return `found`, (a - b) - (c - d), with the four in the order of that turn; unchanged where a side is no difference."""
    first, second = (getattr(side, mixes.TERMS, None) for side in (left, right))
    if first is None or second is None or not (_still(left, *first) and _still(right, *second)):
        return found
    (a, b), (c, d) = first, second
    groups = ((a - c, b - d), (a - b - c, -d), (a + d, b + c), (d - b - c, -a))
    one, two = groups[turn % len(groups)]
    return mixes.bounded(one - two, found, a.abs() + b.abs() + c.abs() + d.abs())


def _pair(terms: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor] | None:
    """Return what the two sums are of: the sides of a difference, each times the other factor where there is one."""
    found: tuple[torch.Tensor, torch.Tensor] | None = getattr(terms, mixes.TERMS, None)
    if found is not None:
        return found if _still(terms, *found) else None
    for weight, value in mixes.ways(terms):
        sides = getattr(value, mixes.TERMS, None)
        if sides is not None and getattr(weight, mixes.TERMS, None) is None:
            still = _still(value, *sides) and torch.equal(terms, weight * value)
            return (weight * sides[0], weight * sides[1]) if still else None
    return None


def _still(found: torch.Tensor, left: torch.Tensor, right: torch.Tensor) -> bool:
    """Whether a difference is that of its sides still, up to its rounding: a golden may have written into one of the three."""
    most = torch.finfo(found.dtype).eps * (left.abs() + right.abs())
    return bool(((found - (left - right)).abs() <= most).all())


def _whole(side: Any, shape: torch.Size) -> bool:
    """Whether a side has the shape of the difference, and memory of its own for each element."""
    if not isinstance(side, torch.Tensor) or side.shape != shape or side.dtype != torch.float32:
        return False
    return all(step for step, size in zip(side.stride(), side.shape, strict=True) if size > 1)
