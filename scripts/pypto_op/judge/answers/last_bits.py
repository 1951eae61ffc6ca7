"""Is a refused element as right as float32 can have it? The golden is asked on inputs that are moved by their last bits.

Sums of 16-bit inputs are exact in float32, so no order of the golden's additions shows that they cancel. A kernel that multiplies
each term by a factor first, `beta * a - beta * b`, rounds each product: what is left is off by last bits of the terms, and a
tolerance for the difference refuses it in every second draw.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch

from pypto_op.backends.base import RunResult
from pypto_op.comparison.rules import AllClose
from pypto_op.comparison.twin_bounds import rule_for
from pypto_op.documents.policy import Policy
from pypto_op.vocabulary import Outcome

if TYPE_CHECKING:
    from pypto_op.backends.base import Value

HALF_A_UNIT = 2.0**-24
"""What rounding a product to float32 may change of it."""

_STEP = 64.0
"""Inputs are moved by so many halves of a unit, and what that changes is divided by as many. A comparison that an input meets
exactly turns for any step, so what it changes counts little: `>` for `>=` stays wrong."""

_DRAWS, _ROUNDINGS = 4, 4.0
"""So often inputs are moved, each element up or down by chance; and so many such changes are right beside the greatest seen."""

_FEW = 0.01
"""Share of an output's elements that may be off so: where terms cancel they seldom do so to nothing."""

Outputs = Sequence[torch.Tensor]


def answers(golden: Callable[..., RunResult], inputs: Sequence[Value]) -> list[Outputs]:
    """Return the golden's answer in float64, and those on moved inputs; [] where it does not run so.

    Args:
        golden: runs it on inputs; takes `float64` as `ReferenceSession.golden`.
    """
    found: list[Outputs] = []
    for draw in range(_DRAWS + 1):
        generator = torch.Generator().manual_seed(draw)
        run = golden([_moved(value, generator if draw else None) for value in inputs], float64=True)
        if run.outcome is not Outcome.OK or (found and len(run.outputs) != len(found[0])):
            return []
        found.append(run.outputs)
    return found


def few_off(actual: torch.Tensor, expected: torch.Tensor, policy: Policy) -> torch.Tensor | None:
    """Return which elements of an output a policy refuses, where they are few; None where they are many.

    Under a tolerance of `atol` and `rtol` these are the ones beyond it. Another policy speaks of the whole output: then the ones
    whose relative error is greatest, as the policy has it.
    """
    if not actual.is_floating_point() or not actual.numel():
        return None
    wanted = expected.to(torch.float64)
    error = (actual.to(torch.float64) - wanted).abs()
    most = max(1, int(_FEW * actual.numel()))
    rule = rule_for(policy, str(actual.dtype), wanted, ())
    off, beyond = rule.add(error, wanted.abs())
    if not isinstance(rule, AllClose):  # beside the least that a denominator may be: next to 0 any error is great
        first = beyond.nan_to_num(0.0, torch.inf, 0.0).flatten().topk(most).indices  # many elements may be off alike
        off = torch.zeros_like(off.flatten()).scatter(0, first, True).reshape(off.shape) & (error > 0.0)
    return off if 0 < int(off.sum()) <= most else None


def without_explained(
    actual: torch.Tensor, expected: torch.Tensor, off: torch.Tensor, moved: Sequence[torch.Tensor]
) -> torch.Tensor:
    """Return an output with what is expected in the place of those elements that last bits of the inputs explain.

    Args:
        expected: what it was compared with, of the same shape.
        off: which elements to look at.
        moved: the output as `answers` has it.
    """
    found = [one.to(torch.float64) for one in moved]
    if not found or any(one.shape != actual.shape for one in found):
        return actual
    error = (actual.to(torch.float64) - expected.to(torch.float64)).abs()
    spread = torch.stack([(one - found[0]).abs() for one in found[1:]]).amax(dim=0) / _STEP
    return torch.where(off & (error <= _ROUNDINGS * spread), expected.to(actual.dtype), actual)


def _moved(value: Value, generator: torch.Generator | None) -> Value:
    """Return a floating tensor in float64, each element up or down by `_STEP` halves of a unit; any other value as it is."""
    if not isinstance(value, torch.Tensor) or not value.is_floating_point():
        return value
    wide = value.to(torch.float64)
    if generator is None:
        return wide
    signs = torch.randint(0, 2, wide.shape, generator=generator, dtype=torch.float64) * 2.0 - 1.0
    return wide * (1.0 + _STEP * HALF_A_UNIT * signs)
