"""A sum of two float32 tensors that is rounded, now and then, to the other side of its exact value.

Where a golden adds tensors and folds nothing, every order of additions runs alike, and one run says what error is natural. Where
two numbers nearly cancel, the error of that run is a matter of luck: in one of ten draws another right kernel errs far more. The
four orders, each rounding otherwise in its own places, are four more samples of it.
"""

from __future__ import annotations

from typing import Any

import torch

_SPREAD = 0x9E3779B1 - (1 << 32)
"""Times this, numbers that follow one another lie far apart (modulo 2 ** 32)."""
_ALL, _TWICE = 2.0**31, 2.0


def neighbour(found: torch.Tensor, one: Any, two: Any, salt: int) -> torch.Tensor:
    """Return `found`, which is one + two, or the next number on the other side of the exact sum.

    That one is taken the more often the nearer it is: always where the sum lies in the middle, never where it is exact. So
    counts, places and selections by 0 and 1 stay. The choice follows from the bits of `found`: a golden that computes a sum
    twice gets the same one twice.

    Args:
        found: the sum; returned as it is where it is not of float32.
        one: a tensor, or a number.
        two: the same.
        salt: another one chooses other places.
    """
    if found.dtype != torch.float32 or not found.numel():
        return found
    one, two = number(one), number(two)
    part = found - one
    lost = (one - (found - part)) + (two - part)
    beyond = torch.nextafter(found, lost * torch.inf)  # nan where nothing is lost, and nan is below nothing
    drawn = ((found.contiguous().view(torch.int32) + salt) * _SPREAD).to(torch.float32).abs() / _ALL
    return torch.where(drawn * (beyond - found).abs() < _TWICE * lost.abs(), beyond, found)


def number(term: Any) -> Any:
    """Return a term as something that can be subtracted and negated: truth values and unsigned numbers cannot."""
    if isinstance(term, torch.Tensor):
        return term if term.is_floating_point() else term.to(torch.float32)
    return float(term) if isinstance(term, bool) else term
