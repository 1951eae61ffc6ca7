"""A sum of two float32 tensors that is rounded, now and then, to the other side of its exact value.

Where a golden adds tensors and folds nothing, every order of additions runs alike, and one run says what error is natural. Where
two numbers nearly cancel, the error of that run is a matter of luck: in one of ten draws another right kernel errs far more. The
four orders, each rounding otherwise in its own places, are four more samples of it.

A product, a quotient or a root that goes into such a sum is rounded to its other side by the same rule. What nearly cancels shows
the rounding of its terms and hardly one of its own: a weighted mean whose weights are divided first has other terms.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from pypto_op.twins import mixes

SPREAD = 0x9E3779B1 - (1 << 32)
"""Times this, numbers that follow one another lie far apart (modulo 2 ** 32)."""
_SPREAD = np.int32(SPREAD)
_TO_BINADE = np.float32(2.0**-32 * (1.0 - 2.0**-24))
"""Times this, a float32 number's exponent is that of the binade just below it, in units of 2 ** -32."""
_EXPONENT = np.int32(0x7F800000)
_SHARE = np.float32(2.0**-24 * (1.0 - 2.0**-12))
"""Brings a drawn number to just less than a quarter of the last place, on either side."""


_MADE = "_pypto_op_made"
"""Attribute of a float32 tensor that a product, a quotient or a root has just made: what it is in float64."""


def made(found: torch.Tensor, operator: Callable[..., torch.Tensor], *operands: Any) -> torch.Tensor:
    """Return `found`, operator(*operands), which remembers where it comes from if it is of float32."""
    if found.dtype == torch.float32:
        setattr(found, _MADE, (operator, [mixes.bare(operand) for operand in operands]))
    return found


def negated(term: Any) -> Any:
    """Return -term, a number or a tensor, which comes from where the term comes from."""
    found = -number(term)
    operator, operands = getattr(term, _MADE, (None, ()))
    return found if operator is None else made(found, lambda *sides: -operator(*sides), *operands)


def neighbour(found: torch.Tensor, one: Any, two: Any, salt: int) -> torch.Tensor:
    """Return `found`, which is one + two, or the next number on the other side of the exact sum.

    That one is taken the more often the nearer it is: always where the sum lies in the middle, never where it is exact. So
    counts, places and selections by 0 and 1 stay. The choice follows from the bits of `found`: a golden that computes a sum
    twice gets the same one twice.

    Args:
        found: the sum; returned as it is where it is not of float32.
        salt: another one chooses other places.
    """
    if found.dtype != torch.float32 or not found.numel():
        return found
    total = found.detach().numpy()
    with np.errstate(all="ignore"):
        first, first_moved = _other_side(number(one), salt)
        second, second_moved = _other_side(number(two), salt + 1)
        if first_moved or second_moved:
            total = np.asarray(first + second)
        part = total - first
        lost = (first - (total - part)) + (second - part)
        return torch.from_numpy(np.asarray(_beyond(total, lost, salt)))  # of no axes, NumPy makes a number


def _other_side(term: Any, salt: int) -> tuple[Any, bool]:
    """Return a term, a float32 array or a number, and whether it changed.

    A term that an operator rounded is here and there the next number on the other side of its exact value.
    """
    if not isinstance(term, torch.Tensor):
        return np.float32(term), False
    plain = term.detach().to(torch.float32).numpy()
    operator, operands = getattr(term, _MADE, (None, ()))
    if operator is None or not term.numel():
        return plain, False
    exact = operator(*(side.to(torch.float64) if isinstance(side, torch.Tensor) else side for side in operands)).numpy()
    lost = (exact - plain).astype(np.float32)
    still = np.abs(lost) <= np.abs(plain) * np.finfo(np.float32).eps  # a golden may have written into one of them
    return _beyond(plain, np.where(still, lost, np.float32(0.0)), salt), True


def _beyond(found: Any, lost: Any, salt: int) -> Any:
    """Return float32 numbers, or the next ones towards `lost`, what rounding took from each; the more often, the more that is.

    To a number twice what it lost is added, and something between minus and plus half of the last place: the sum is rounded to
    the next number in just that share of draws, and to the number itself where nothing was lost. At a power of two the last place
    is that of the binade below, where half of the greater one would reach the next number by itself.

    In NumPy: a golden that walks an axis adds thousands of short rows, and torch takes twice as long for a step of those.
    """
    drawn = (found.view(np.int32) * _SPREAD + _constant(salt)).astype(np.float32)
    drawn *= ((found * _TO_BINADE).view(np.int32) & _EXPONENT).view(np.float32)
    drawn *= _SHARE
    drawn += lost
    drawn += drawn
    drawn += found
    # A sum tells sooner than a mask whether there is NaN or infinity, which have lost NaN.
    return drawn if math.isfinite(found.sum()) else np.where(np.isfinite(found), drawn, found)


@functools.cache
def _constant(salt: int) -> np.int32:
    return np.int32((salt * SPREAD + (1 << 31)) % (1 << 32) - (1 << 31))


def number(term: Any) -> Any:
    """Return a term as something that can be subtracted and negated: truth values and unsigned numbers cannot."""
    if isinstance(term, torch.Tensor):
        return term if term.is_floating_point() else term.to(torch.float32)
    return float(term) if isinstance(term, bool) else term
