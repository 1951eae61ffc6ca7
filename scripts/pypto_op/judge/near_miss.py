"""The near-miss rule (design, row 5): does a failure look like natural rounding rather than like a defect?

It only flags `cpu_reproducer_candidate`; it never turns a FAIL into a PASS.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pypto_op.compare import TensorComparison
from pypto_op.policy import Policy

if TYPE_CHECKING:
    import torch

SCALE_SHARE = 0.01
"""Error relative to the output's scale, as a share of rtol, below which a failure may be rounding."""
MAX_VIOLATION = 10.0
"""Largest error as a multiple of what is allowed."""
MAX_FAIL_FRACTION = 0.01
"""Largest share of failing elements."""
SMALL_CELL = 1e-3
"""A cell below this share of the output's scale is one where relative tolerances mean little."""


def is_near_miss(leaf: TensorComparison, actual: torch.Tensor, expected: torch.Tensor, policy: Policy) -> bool:
    """Say whether a failing output is a near miss.

    Either the error is tiny beside the output's scale, few elements fail, and those not by much; or every failing
    element lies where the reference itself is tiny, and the error is small beside the scale.

    Args:
        leaf: the comparison that failed.
        actual: the candidate's output.
        expected: the reference, of the same shape.
        policy: the tolerance that was broken.
    """
    if leaf.special_mismatch_count or leaf.zero_output or leaf.constant_output or leaf.rel_to_scale is None:
        return False
    if not actual.is_floating_point():
        return False
    numbers = policy.for_dtype(leaf.dtype)
    rtol = float(numbers.get("rtol", numbers.get("mare", 0.0)))
    few = leaf.max_violation is not None and leaf.max_violation <= MAX_VIOLATION
    few = few and leaf.fail_fraction < MAX_FAIL_FRACTION
    if few and leaf.rel_to_scale < rtol * SCALE_SHARE:
        return True
    return leaf.rel_to_scale < rtol and _only_small_cells_fail(actual, expected, rtol, float(numbers.get("atol", 0.0)))


def _only_small_cells_fail(actual: torch.Tensor, expected: torch.Tensor, rtol: float, atol: float) -> bool:
    import torch

    wide, truth = actual.to(torch.float64), expected.to(torch.float64)
    finite = torch.isfinite(wide) & torch.isfinite(truth)
    if not bool(finite.any()):
        return False
    magnitude = truth[finite].abs()
    failing = (wide[finite] - truth[finite]).abs() > atol + rtol * magnitude
    if not bool(failing.any()):
        return False
    return float(magnitude[failing].max()) < SMALL_CELL * float(magnitude.max())
