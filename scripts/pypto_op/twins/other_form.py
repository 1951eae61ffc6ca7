"""A golden's other form: the same mathematics as another algorithm, whose rounding errors are honest too.

A recurrence may be taken token by token or in chunks, a variance in one pass or in two. No order of additions turns one into the
other, yet a right kernel may be either. So the file of a golden `f` may define `f_other_form`, with the same arguments and
outputs. It is believed where it says what the golden says in float64, case by case, and its errors count up to `MOST` times what
the golden itself rounds. It never decides what is right: the truth, whole numbers and the place of a NaN are the golden's.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any

import torch

SUFFIX = "_other_form"

MOST = 32.0
"""How many times the golden's own rounding error a form's may be. Measured on a chunked recurrence beside one that goes token by
token: 1 to 10 times."""

AGREES = 2.0**-20
"""How far form and golden may lie apart in float64, as a share of the golden's rounding error in its own dtype. Where both are
right it is about 2 ** -29 for float32."""


NEAR = 2.0**-10
"""Elements below this share of the greatest count as near 0."""


def form_of(golden: Callable[..., Any]) -> Callable[..., Any] | None:
    """Return the other form of a golden that was loaded from its file, None where that defines none."""
    plain = inspect.unwrap(golden)
    found = getattr(plain, "__globals__", {}).get(f"{getattr(plain, '__name__', '')}{SUFFIX}")
    return found if callable(found) else None


def defines_form(source: str, function: str) -> bool:
    """Return whether a golden's file defines another form of one of its functions."""
    return re.search(rf"^def {re.escape(function)}{SUFFIX}\b", source, re.MULTILINE) is not None


def disagreement(
    own: Sequence[torch.Tensor], exact: Sequence[torch.Tensor], form: Sequence[torch.Tensor], form_exact: Sequence[torch.Tensor]
) -> str:
    """Say how a form contradicts its golden, "" where it does not.

    Args:
        own: the golden's outputs in their own dtypes.
        exact: the golden's in float64.
        form: the form's in their own dtypes.
        form_exact: the form's in float64.
    """
    if [(leaf.shape, leaf.dtype) for leaf in own] != [(leaf.shape, leaf.dtype) for leaf in form]:
        return "its outputs have other shapes or dtypes than the golden's"
    if len(form_exact) != len(exact) or any(mine.shape != leaf.shape for mine, leaf in zip(form_exact, exact, strict=True)):
        return "in float64 its outputs have other shapes than the golden's"
    for place, (unit, truth, other) in enumerate(zip(_units(own, exact), exact, form_exact, strict=True)):
        both = truth.isfinite() & other.isfinite()
        apart = float((other - truth)[both].abs().amax()) if unit is not None and bool(both.any()) else 0.0
        if apart > AGREES * (unit or 0.0):
            return f"in float64 its output {place + 1} is another than the golden's"
    return ""


def counted(
    own: Sequence[torch.Tensor], exact: Sequence[torch.Tensor], forms: Sequence[Sequence[torch.Tensor]]
) -> list[torch.Tensor]:
    """Return the form's outputs as far as they count: no whole number, nothing that is not finite, errors up to `MOST`.

    Args:
        own: the golden's outputs in their own dtypes.
        exact: the golden's in float64.
        forms: the form's in their own dtypes, as it stands and with its sums in other orders. For each output that one counts
            whose errors are greatest on the whole (twice those of another, measured). Near 0, where a relative error is made
            of a few roundings and may be none by chance, the furthest counts for each element.
    """
    units, found = _units(own, exact), []
    for place, (leaf, truth, unit) in enumerate(zip(own, exact, units, strict=True)):
        found.append(leaf if unit is None else _counted(leaf, truth, [form[place] for form in forms], MOST * unit))
    return found


def _counted(own: torch.Tensor, truth: torch.Tensor, forms: Sequence[torch.Tensor], most: float) -> torch.Tensor:
    mine = max((form.to(torch.float64) for form in forms), key=lambda form: _root_mean_square(form - truth))
    greatest = truth.abs().nan_to_num(0.0, 0.0, 0.0).max() if truth.numel() else 0.0
    small = truth.abs() <= NEAR * greatest
    for other in forms:
        further = small & ((other - truth).abs() > (mine - truth).abs())
        mine = torch.where(further, other.to(torch.float64), mine)
    error = (mine - truth).clamp(-most, most)
    finite = own.isfinite() & truth.isfinite() & mine.isfinite()
    return torch.where(finite, (truth + error).to(own.dtype), own)


def _root_mean_square(errors: torch.Tensor) -> float:
    finite = errors[errors.isfinite()]
    return float(finite.square().mean().sqrt()) if finite.numel() else 0.0


def _units(own: Sequence[torch.Tensor], exact: Sequence[torch.Tensor]) -> list[float | None]:
    """Return per output what its errors are measured in, None for whole numbers.

    That is the golden's own rounding error. Where an output is 0 throughout it has none, and that of the others counts: a form
    that forms the 0 by taking sums of their size apart is left with an error of their size.
    """
    found = [_rounding(leaf, truth) if leaf.is_floating_point() else None for leaf, truth in zip(own, exact, strict=True)]
    greatest = max((unit for unit in found if unit is not None), default=0.0)
    return [unit if unit is None else unit or greatest for unit in found]


def _rounding(own: torch.Tensor, truth: torch.Tensor) -> float:
    """Return the golden's greatest rounding error, at least one rounding of its greatest output; 0 where nothing is finite."""
    finite = own.isfinite() & truth.isfinite()
    if not bool(finite.any()):
        return 0.0
    off = float((own.to(torch.float64) - truth)[finite].abs().max())
    return max(off, torch.finfo(own.dtype).eps * float(truth[finite].abs().max()))
