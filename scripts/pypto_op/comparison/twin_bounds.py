"""What a policy allows one floating output: tolerances as they stand, or the worst errors of honest twins."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch

from pypto_op.comparison.bias import row_bias
from pypto_op.comparison.numbers import all_finite, as_wide, special_kind
from pypto_op.comparison.rules import AllClose, Measures, Relative
from pypto_op.comparison.walk import pieces
from pypto_op.documents.policy import Policy

MANY = 32
"""Elements that must carry an average: that of fewer is as much a matter of luck as the greatest of them."""


class TwinBounds:
    """The errors of honest twins beside a truth, each measured when it is asked for, and once.

    Args:
        policy: `twin`.
        truth: in float64; stays as it is.
        twins: outputs of its shape; stay as they are.
    """

    def __init__(self, policy: Policy, dtype: str, truth: torch.Tensor, twins: Sequence[torch.Tensor]) -> None:
        self._numbers, self._factor = policy.for_dtype(dtype), policy.as_dict()["factor"]
        self._truth, self._twins = truth, twins

    def rule(self) -> Relative:
        """Return the rule for another output."""
        return Relative(self._clamp, *self._limits, strict=False)

    @cached_property
    def bias(self) -> float:
        """The bias of rows that the worst twin has."""
        return max((row_bias(twin, self._truth, self._clamp) for twin in self._twins), default=0.0)

    @cached_property
    def _clamp(self) -> float:
        return float(self._numbers["clamp"]) * _scale(self._truth)

    @cached_property
    def _limits(self) -> tuple[float, float, float]:
        limit = {name: self._numbers["floor"][name] for name in ("mare", "mere", "rmse")}
        for twin in self._twins:
            measured = _measures(twin, self._truth, self._clamp)
            carried_by = measured.carried_by()
            for name, value in measured.as_dict().items():
                few = carried_by.get(name, MANY) < MANY
                times = max(self._factor[name], self._factor["mare"]) if few else self._factor[name]
                limit[name] = max(limit[name], times * value)
        return limit["mare"], limit["mere"], limit["rmse"]


@dataclass
class _OfTwin(Measures):
    """The errors of a twin, and how many elements carry their averages, which nobody asks of a candidate."""

    squares: float = 0.0
    diff_fourths: float = 0.0

    def add(self, diff: torch.Tensor, magnitude: torch.Tensor) -> torch.Tensor:
        """See `Measures.add`."""
        relative = super().add(diff, magnitude)
        self.squares += float(relative.square().sum())
        self.diff_fourths += float(diff.square().square().sum())
        return relative

    def carried_by(self) -> dict[str, float]:
        """Return how many elements make up each average."""
        sums = {"mere": (self.total, self.squares), "rmse": (self.diff_squares, self.diff_fourths)}
        return {name: carriers(total, squares, self.count) for name, (total, squares) in sums.items()}


def carriers(total: float, squares: float, count: int) -> float:
    """Return how many of `count` elements make up a sum: all where they are off alike, one where it alone is off.

    Args:
        total: the sum of what the elements are off by.
        squares: of its squares; where that leaves float64's range, all carry it.
    """
    return (total / math.sqrt(squares)) ** 2 if 0.0 < squares < math.inf else float(count)


def rule_for(
    policy: Policy, dtype: str, expected: torch.Tensor, twins: Sequence[torch.Tensor], bounds: TwinBounds | None = None
) -> AllClose | Relative:
    """Return the rule of `policy` for one floating tensor.

    Args:
        expected: the golden, or the fp64 truth when the policy is `twin`.
        twins: outputs of honest twins, of `expected`'s shape; used by `twin` only.
        bounds: of these twins, where somebody has them.
    """
    if policy.needs_twins:
        return (bounds or TwinBounds(policy, dtype, expected, twins)).rule()
    numbers = policy.for_dtype(dtype)
    if policy.name == "allclose":
        return AllClose(numbers["atol"], numbers["rtol"])
    limits = (numbers["mare"], numbers["mere"], numbers.get("rmse"))
    return Relative(numbers["clamp"], *limits, strict=True)


def _scale(tensor: torch.Tensor) -> float:
    greatest = 0.0
    for _, (piece,) in pieces([tensor]):
        wide = as_wide(piece)
        finite = wide if all_finite(wide) else wide[special_kind(wide) == 0]
        if finite.numel():
            greatest = max(greatest, float(finite.abs().max()))
    return greatest


def _measures(twin: torch.Tensor, truth: torch.Tensor, clamp: float) -> _OfTwin:
    measures = _OfTwin(clamp)
    for _, (one, other) in pieces([twin, truth]):
        first, second = as_wide(one), as_wide(other)
        if not (all_finite(first) and all_finite(second)):
            finite = (special_kind(first) == 0) & (special_kind(second) == 0)
            first, second = first[finite], second[finite]
        measures.add((first - second).abs(), second.abs())
    return measures
