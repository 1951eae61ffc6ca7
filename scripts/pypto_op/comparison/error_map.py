"""Where in a tensor the error lies, coarse enough to be looked at and to give no value away."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from pypto_op.comparison.numbers import as_wide, special_kind
from pypto_op.comparison.twin_bounds import rule_for
from pypto_op.documents.policy import Policy

ROWS, COLUMNS = 48, 96
WORST = 1e6
"""Stands for a NaN or Inf in the wrong place, and caps everything else."""


def error_map(
    actual: torch.Tensor, expected: torch.Tensor, policy: Policy, twins: Sequence[torch.Tensor] = ()
) -> list[list[float]]:
    """Return the error of a tensor as a grid: error divided by what is allowed, the largest of each cell.

    Args:
        actual: the candidate's output, any shape, floating or integer.
        expected: the golden, of the same shape.
        policy: the tolerance policy; integers are allowed no error.
        twins: outputs of honest twins, for the policy `twin`.

    Returns:
        At most ROWS x COLUMNS numbers from 0 to WORST. All axes but the last are the rows. An empty tensor, or one of
        another shape, gives [].
    """
    if actual.shape != expected.shape or not expected.numel():
        return []
    first, second = as_wide(actual), as_wide(expected)
    same_kind = special_kind(first) == special_kind(second)
    finite = same_kind & (special_kind(second) == 0)
    diff = torch.where(finite, (first - second).abs(), torch.zeros((), dtype=torch.float64))
    if expected.dtype.is_floating_point or expected.dtype.is_complex:
        rule = rule_for(policy, str(expected.dtype), expected, twins)
        _, ratio = rule.add(diff, torch.where(finite, second.abs(), torch.zeros((), dtype=torch.float64)))
    else:
        ratio = (diff != 0).to(torch.float64) * WORST
    ratio = torch.where(same_kind, ratio.to(torch.float64), torch.full((), WORST, dtype=torch.float64))
    grid = ratio.clamp(max=WORST).nan_to_num(WORST).reshape(-1, expected.shape[-1] if expected.dim() else 1)
    pooled = torch.nn.functional.adaptive_max_pool2d(grid[None, None], (min(ROWS, grid.shape[0]), min(COLUMNS, grid.shape[1])))
    return [[float(f"{cell:.3g}") for cell in row] for row in pooled[0, 0].tolist()]
