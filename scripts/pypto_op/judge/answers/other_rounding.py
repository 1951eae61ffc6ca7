"""Is an output, refused beside orders of the golden's sums, another algorithm's rounding? SPEC.md's tolerance is asked.

A policy of twins stands in a case because one output needs it. Another output of the same case may keep SPEC.md's tolerance with
ease, and round a little more than any order of the golden's sums: a bias that is split into two parts, a logarithm taken twice.
An error of that kind goes up as often as down. One that leans one way is a fault, however small (an epsilon in a divisor).
"""

from __future__ import annotations

import math

import torch

from pypto_op.compare import TensorComparison
from pypto_op.comparison.rules import Condition
from pypto_op.comparison.twin_bounds import MANY, carriers
from pypto_op.documents.policy import Policy
from pypto_op.judge.findings.near_miss import ALIKE

SHARE = 0.125
"""Of SPEC.md's tolerance; the error of another algorithm in float32 stays below it. Measured: a twentieth at most."""

LEANING, _BY_CHANCE = 0.5, 2.0
"""Share of the errors' sum that may be left when their signs are counted; more where few elements carry the sum, since the signs
of n errors leave one in sqrt(n) by chance. Measured over many: 0.3 of rounding, 0.9 to 1 of an epsilon."""

_LAST_BITS = 4 * 2.0**-23
"""Of an output's greatest number: what a difference of numbers of that size loses in float32, however small it is itself."""

_A_FAULT = 0.05
"""A relative error that no tolerance worth its name takes for right."""


def tells(tolerance: Policy, expected: torch.Tensor, dtype: str) -> bool:
    """Return whether a tolerance could refuse an output at all: outputs may lie so near 0 that `atol` takes anything.

    Args:
        expected: the output that is right.
        dtype: of the output that is judged.
    """
    size = float(expected.double().abs().mean()) if expected.is_floating_point() and expected.numel() else 0.0
    if not 0.0 < size < float("inf"):
        return False
    numbers = tolerance.for_dtype(dtype)
    return float(numbers.get("atol", 0.0)) + float(numbers.get("rtol", 0.0)) * size < _A_FAULT * size


def only_last_bits(refused: TensorComparison, condition: float | None = None) -> bool:
    """Return whether single elements alone leave honest orders' errors, by no more than last bits of the greatest number.

    A factor that is multiplied in before a subtraction, or a share that is subtracted from 1, does that where little is left.

    Args:
        refused: the comparison under a policy of twins; it failed.
        condition: condition number of a sum that these inputs are made for; then the greatest error is a matter of luck.
    """
    if refused.special_mismatch_count or refused.zero_output or refused.rel_to_scale is None:
        return False
    off = {one.name: one for one in refused.conditions if not one.ok}
    if set(off) == {"mare"} and condition is not None:
        return _alike(off["mare"])
    # What single elements are off by may make up most of the mean, where the others are exact.
    held = set(off) <= {"mare", "mere"} and ("mere" not in off or _alike(off["mere"]))
    return held and refused.rel_to_scale <= _LAST_BITS


def rounds_otherwise(
    refused: TensorComparison, kept: TensorComparison, actual: torch.Tensor, truth: torch.Tensor, policy: Policy
) -> bool:
    """Return whether an error is as small, and as even, as another algorithm's rounding.

    Args:
        refused: the comparison under a policy of twins; it failed.
        kept: the comparison under SPEC.md's tolerance, which tells something of this output (`tells`).
        actual: the output.
        truth: what `refused` was compared with, of the same shape.
        policy: the policy of twins.
    """
    if not kept.all_close or (kept.max_violation or 0.0) > SHARE or refused.special_mismatch_count or refused.zero_output:
        return False
    told = {one.name: one for one in refused.conditions}
    if any(not told[name].ok for name in ("bias", "not_all_zero") if name in told):
        return False
    left, carried_by = _summed(actual, truth, float(policy.for_dtype(str(actual.dtype))["clamp"]))
    # An average that few elements make up is as much a matter of luck as the greatest error, which is asked.
    asked = ("mare", "mere", "rmse") if carried_by >= MANY else ("mare",)
    return all(_alike(told[name]) for name in asked if name in told) and left <= max(LEANING, _BY_CHANCE / math.sqrt(carried_by))


def _alike(one: Condition) -> bool:
    return one.value <= ALIKE * one.limit


def _summed(actual: torch.Tensor, truth: torch.Tensor, clamp: float) -> tuple[float, float]:
    """Return how much of the relative errors' sum is left with signs, as they are or away from 0, and how many carry the sum."""
    exact = truth.to(torch.float64)  # finite, or `tells` had said no
    relative = (actual.to(torch.float64) - exact) / exact.abs().clamp(min=clamp * float(exact.abs().max()))
    total = float(relative.abs().sum())  # above 0: a twin policy refused it
    left = max(abs(float(relative.sum())), abs(float((relative * exact.sign()).sum())))
    return left / total, carriers(total, float(relative.square().sum()), relative.numel())
