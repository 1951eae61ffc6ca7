"""Measure one output against its expectation, piece by piece, into plain numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from pypto_op.comparison.numbers import all_finite, as_int64, as_wide, count_nan_inf, int_distance, special_kind, ulp_distance
from pypto_op.comparison.rules import Rule
from pypto_op.comparison.walk import pieces

REL_FLOOR = 1e-12
"""Least denominator of `max_rel_diff`."""


@dataclass
class Measured:
    """Running totals over the pieces of one tensor. Differences are |actual - expected| of finite pairs."""

    finite: int = 0
    bad: int = 0
    special_mismatches: int = 0
    nan: list[int] = field(default_factory=lambda: [0, 0])  # actual, expected
    inf: list[int] = field(default_factory=lambda: [0, 0])
    diff_sum: float = 0.0
    diff_squares: float = 0.0
    diff_max: float = 0.0
    diff_max_at: int | None = None
    bad_diff_sum: float = 0.0
    bad_diff_max: float = 0.0
    rel_max: float = 0.0
    rel_max_at: int | None = None
    violation_max: float = 0.0
    violation_at: int | None = None
    special_at: int | None = None
    ulp_max: float | None = None
    above: int = 0
    below: int = 0
    actual_max: float = 0.0
    expected_max: float = 0.0
    actual_range: list[float] = field(default_factory=lambda: [torch.inf, -torch.inf])
    expected_range: list[float] = field(default_factory=lambda: [torch.inf, -torch.inf])

    @property
    def worst_at(self) -> int | None:
        """Flat index of the worst element: a wrong NaN or Inf before any finite difference."""
        return self.special_at if self.special_at is not None else self.violation_at

    def add_finite(self, offset: int, where: torch.Tensor | None, diff: torch.Tensor, magnitude: torch.Tensor) -> None:
        """Add |actual - expected| and |expected| (float64) of the finite elements of a piece.

        `where` holds their indices in the piece; None if it has no others.
        """
        if not diff.numel():
            return
        self.finite += diff.numel()
        self.diff_sum += float(diff.sum())
        self.diff_squares += float(diff.square().sum())
        self.expected_max = max(self.expected_max, float(magnitude.max()))
        greatest, at = diff.max(dim=0)
        if float(greatest) > self.diff_max:
            self.diff_max, self.diff_max_at = float(greatest), _flat_index(offset, where, at)
        relative, at = (diff / magnitude.clamp(min=REL_FLOOR)).max(dim=0)
        if float(relative) > self.rel_max:
            self.rel_max, self.rel_max_at = float(relative), _flat_index(offset, where, at)

    def add_verdicts(
        self, offset: int, where: torch.Tensor | None, diff: torch.Tensor, bad: torch.Tensor, violation: torch.Tensor
    ) -> None:
        """Add which finite elements are out of tolerance, and by how much."""
        if not diff.numel():
            return
        greatest, at = violation.max(dim=0)
        if float(greatest) > self.violation_max:
            self.violation_max, self.violation_at = float(greatest), _flat_index(offset, where, at)
        if bool(bad.any()):
            out = diff[bad]
            self.bad += out.numel()
            self.bad_diff_sum += float(out.sum())
            self.bad_diff_max = max(self.bad_diff_max, float(out.max()))

    def add_signs(self, signed: torch.Tensor) -> None:
        """Count elements above and below their expectation."""
        self.above += int(torch.count_nonzero(signed > 0))
        self.below += int(torch.count_nonzero(signed < 0))

    def add_ranges(self, actual: torch.Tensor, expected: torch.Tensor) -> None:
        """Widen the ranges of the finite real values seen on both sides."""
        for seen, values in ((self.actual_range, actual), (self.expected_range, expected)):
            if values.numel():
                low, high = torch.aminmax(values)
                seen[0], seen[1] = min(seen[0], float(low)), max(seen[1], float(high))

    def add_equal(self, values: torch.Tensor) -> None:
        """Add a piece (float64) of equal, finite numbers: there is no difference to measure, whose worst place to keep."""
        self.finite += values.numel()
        greatest = float(values.abs().max())
        self.actual_max, self.expected_max = max(self.actual_max, greatest), max(self.expected_max, greatest)
        if not values.is_complex():
            self.add_ranges(values, values)


def measure_exact(actual: torch.Tensor, expected: torch.Tensor) -> Measured:
    """Compare integers or bools: any difference is out of tolerance. No conversion loses a bit."""
    result = Measured()
    for offset, (left, right) in pieces([actual, expected]):
        first, second = as_int64(left), as_int64(right)
        wide = first.to(torch.float64)
        if torch.equal(first, second):
            result.add_equal(wide)
            continue
        other = second.to(torch.float64)
        diff = int_distance(first, second)
        result.add_finite(offset, None, diff, other.abs())
        result.add_verdicts(offset, None, diff, diff > 0, torch.where(diff > 0, torch.inf, 0.0))
        result.add_signs((first > second).to(torch.int8) - (first < second).to(torch.int8))
        result.add_ranges(wide, other)
        result.actual_max = max(result.actual_max, float(wide.abs().max()))
    return result


def measure_floating(actual: torch.Tensor, expected: torch.Tensor, rule: Rule, twins: Sequence[torch.Tensor] = ()) -> Measured:
    """Compare floating or complex tensors of one shape under `rule`.

    Args:
        expected: the golden in the same dtype, or an fp64 truth when twins are given.
        twins: honest outputs in the candidate's dtype. Where one of them, or the truth rounded to that
            dtype, is NaN or Inf, the candidate may be so too.
    """
    result = Measured()
    if not actual.is_complex():
        result.ulp_max = 0.0
    for offset, parts in pieces([actual, expected, *twins]):
        _add_piece(result, rule, offset, parts[0], parts[1], parts[2:])
    return result


def _add_piece(
    result: Measured, rule: Rule, offset: int, actual: torch.Tensor, expected: torch.Tensor, twins: Sequence[torch.Tensor]
) -> None:
    first, second = as_wide(actual), as_wide(expected)
    rounded = expected if expected.dtype == actual.dtype else expected.to(actual.dtype)
    where = None
    calm = all_finite(first) and all_finite(second) and (rounded is expected or all_finite(as_wide(rounded)))
    if not calm:
        where = _finite_where(result, offset, first, second, rounded, twins)
        if not where.numel():
            return
        first, second = first[where], second[where]
        actual, rounded = actual[where], rounded[where]
    if calm and rounded is expected and torch.equal(actual, expected):
        result.add_equal(second)
        magnitude = second.abs()
        diff = torch.zeros_like(magnitude)
        result.add_verdicts(offset, None, diff, *rule.add(diff, magnitude))
        return
    signed = first - second
    diff, magnitude = signed.abs(), second.abs()
    result.actual_max = max(result.actual_max, float(first.abs().max()))
    result.add_finite(offset, where, diff, magnitude)
    result.add_verdicts(offset, where, diff, *rule.add(diff, magnitude))
    if not actual.is_complex():
        result.add_signs(signed)
        result.add_ranges(first, second)
        distance = ulp_distance(actual, rounded)
        if not calm:
            distance = distance[torch.isfinite(rounded.to(torch.float64))]
        if distance.numel():
            result.ulp_max = max(result.ulp_max or 0.0, float(distance.max()))


def _finite_where(
    result: Measured, offset: int, first: torch.Tensor, second: torch.Tensor, rounded: torch.Tensor, twins: Sequence[torch.Tensor]
) -> torch.Tensor:
    """Compare the places of NaN and Inf; return the indices that are finite on both sides."""
    kind, expected_kind = special_kind(first), special_kind(second)
    accepted = kind == special_kind(as_wide(rounded))
    for twin in twins:
        accepted |= kind == special_kind(as_wide(twin))
    for side, kinds in enumerate((kind, expected_kind)):
        nan, inf = count_nan_inf(kinds)
        result.nan[side] += nan
        result.inf[side] += inf
    if not bool(accepted.all()):
        wrong = (~accepted).nonzero().reshape(-1)
        result.special_mismatches += wrong.numel()
        if result.special_at is None:
            result.special_at = offset + int(wrong[0])
    return (accepted & (kind == 0) & (expected_kind == 0)).nonzero().reshape(-1)


def _flat_index(offset: int, where: torch.Tensor | None, at: torch.Tensor) -> int:
    return offset + int(at if where is None else where[at])
