"""A mix of two values, (1 - s) * l + s * r, as a kernel with one product has it: l + s * (r - l).

The two are the same over the real numbers. In float32 the second rounds `r - l`, which is large where one side is and counts in
full where s is near 1. Where a golden has no sums, nothing else tells an honest kernel's rounding from the golden's own.
"""

from __future__ import annotations

from typing import Any

import torch

MOST = 32.0
"""How many roundings of its two terms a mix may lie away from the golden's. It bounds what a selection by 0 and 1 loses so:
-1e9 + 1 * (x + 1e9) has no bit of x left, and no right kernel selects like this. Of 200,000 mixes of normal values by an even s
three need more, 52 at most, which the room beyond the worst twin covers."""

TERMS = "_pypto_op_terms"
"""Attribute of a float32 tensor that a difference has just made (`twins.differences`)."""
_FACTORS = "_pypto_op_factors"
"""Attribute of a float32 tensor that a product has just made."""


def product(left: Any, right: Any) -> torch.Tensor:
    """Return left * right; a float32 one remembers its factors."""
    found: torch.Tensor = torch.ops.aten.mul.Tensor(left, right)
    if found.dtype == torch.float32:
        setattr(found, _FACTORS, (bare(left, keep=TERMS), bare(right, keep=TERMS)))
    return found


def bare(value: Any, keep: str = "") -> Any:
    """Return the same memory as a tensor that remembers nothing, or that attribute alone.

    Otherwise each step of a recurrence keeps all steps before it alive.
    """
    if not isinstance(value, torch.Tensor):
        return value
    found = value.detach()
    kept = getattr(value, keep, None) if keep else None
    if kept is not None:
        setattr(found, keep, kept)
    return found


def mixed(one: Any, two: Any, *, backwards: bool) -> torch.Tensor | None:
    """Return one + two with one product where that mixes two values; None where it is another sum.

    Args:
        backwards: start from the value that s belongs to: r + (1 - s) * (l - r).
    """
    for first in ways(one):
        for second in ways(two):
            share = _share(first[1], second[1])
            if share is None:
                continue
            if not _still(one, first) or not _still(two, second):
                return None
            start, end = (first, second) if share is second[1] else (second, first)
            start, end = (end, start) if backwards else (start, end)
            return bounded(start[0] + end[1] * (end[0] - start[0]), one + two, one.abs() + two.abs())
    return None


def ways(term: Any) -> list[tuple[Any, Any]]:
    """Return a product's factors as value and weight, both ways round; [] for what is no product."""
    factors = getattr(term, _FACTORS, None)
    return [factors, factors[::-1]] if factors else []


def _share(one: Any, two: Any) -> Any:
    """Return which of two weights is s, the other being 1 - s; None where they are no such pair."""
    if isinstance(one, torch.Tensor) is not isinstance(two, torch.Tensor):
        return None
    if not isinstance(one, torch.Tensor):
        return None if one != 1.0 - two and two != 1.0 - one else min(one, two, key=abs)
    if one.shape != two.shape or one.dtype != two.dtype or not one.is_floating_point() or not one.numel():
        return None
    a, b = one.flatten()[0].item(), two.flatten()[0].item()
    if abs(a + b - 1.0) > torch.finfo(one.dtype).eps * max(1.0, abs(a), abs(b)):  # what most sums are told by, at little cost
        return None
    if torch.equal(one, 1.0 - two):
        return two
    return one if torch.equal(two, 1.0 - one) else None


def _still(term: torch.Tensor, factors: tuple[Any, Any]) -> bool:
    """Whether a product is that of its factors still: a golden may have written into one of the three."""
    return torch.equal(term, factors[0] * factors[1])


def bounded(found: torch.Tensor, plain: torch.Tensor, size: torch.Tensor) -> torch.Tensor:
    """Return another form's result, at most `MOST` roundings of its terms' `size` away from the golden's `plain` one."""
    most = MOST * torch.finfo(plain.dtype).eps * size
    return torch.where(plain.isfinite() & found.isfinite(), plain + (found - plain).clamp(-most, most), plain)
