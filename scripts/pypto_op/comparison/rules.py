"""The policies' rules: how much each element may be off, and the averages that must hold too."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import torch

from pypto_op.comparison.numbers import json_number

_NO_DIVISION_BY_ZERO = 1e-300


@dataclass(frozen=True)
class Condition:
    """A statement about a whole tensor that a policy wants to be true."""

    name: str  # `mere`, `mare`, `rmse`, `bias` or `not_all_zero`
    value: float  # what was measured
    limit: float  # what it is held against
    ok: bool  # whether it holds

    def as_dict(self) -> dict[str, str | float | bool]:
        """Return the condition as JSON data."""
        value, limit = json_number(self.value), json_number(self.limit)
        return {"name": self.name, "value": value, "limit": limit, "ok": self.ok}


class Rule(Protocol):
    """Judges finite floating pieces as they come, then says what must hold for the whole tensor."""

    def add(self, diff: torch.Tensor, magnitude: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Take a piece; return (which elements are out of tolerance, diff as a multiple of what is allowed).

        Args:
            diff: |actual - expected|, float64.
            magnitude: |expected|, float64.
        """

    def conditions(self) -> list[Condition]:
        """Return the conditions on the whole, after the last piece."""

    def allowance(self) -> tuple[float | None, float | None]:
        """Return the absolute and the relative bound to name in messages, None where the rule has none."""


@dataclass
class AllClose:
    """diff <= atol + rtol * magnitude."""

    atol: float
    rtol: float

    def add(self, diff: torch.Tensor, magnitude: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """See `Rule.add`."""
        allowed = magnitude * self.rtol + self.atol
        return diff > allowed, _ratio(diff, allowed)

    def conditions(self) -> list[Condition]:
        """No condition: the elements decide."""
        return []

    def allowance(self) -> tuple[float | None, float | None]:
        """The two tolerances."""
        return self.atol, self.rtol


@dataclass
class Relative:
    """Limits on the maximum and the mean of diff / max(magnitude, clamp), and on rms(diff) / rms(expected)."""

    clamp: float  # the least denominator, in the tensor's own units
    # mare, mere, rmse: the limits; None for rmse switches it off
    mare: float
    mere: float
    rmse: float | None
    strict: bool  # whether reaching a limit already fails
    measured: Measures = field(default_factory=lambda: Measures(0.0))

    def __post_init__(self) -> None:
        self.measured = Measures(self.clamp)

    def add(self, diff: torch.Tensor, magnitude: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """See `Rule.add`."""
        relative = self.measured.add(diff, magnitude)
        bad = relative >= self.mare if self.strict else relative > self.mare
        return bad, relative / self.mare

    def conditions(self) -> list[Condition]:
        """The limits, with what was measured."""
        limits = {"mare": self.mare, "mere": self.mere, "rmse": self.rmse}
        measured = self.measured.as_dict()
        result = []
        for name, limit in limits.items():
            if limit is not None:
                value = measured[name]
                result.append(Condition(name, value, limit, value < limit if self.strict else value <= limit))
        return result

    def allowance(self) -> tuple[float | None, float | None]:
        """Only the greatest relative error has a bound per element."""
        return None, self.mare


@dataclass
class Measures:
    """MARE, MERE and RMSE of a tensor, piece by piece."""

    clamp: float  # the least denominator of the relative errors
    count: int = 0
    greatest: float = 0.0
    total: float = 0.0
    diff_squares: float = 0.0
    expected_squares: float = 0.0

    def add(self, diff: torch.Tensor, magnitude: torch.Tensor) -> torch.Tensor:
        """Take a piece and return its relative errors."""
        relative = diff / magnitude.clamp(min=max(self.clamp, _NO_DIVISION_BY_ZERO))
        if relative.numel():
            self.count += relative.numel()
            self.greatest = max(self.greatest, float(relative.max()))
            self.total += float(relative.sum())
            self.diff_squares += float(diff.square().sum())
            self.expected_squares += float(magnitude.square().sum())
        return relative

    def as_dict(self) -> dict[str, float]:
        """Return `mare`, `mere` and `rmse`; zeros when nothing was measured."""
        count = max(self.count, 1)
        scale = max((self.expected_squares / count) ** 0.5, _NO_DIVISION_BY_ZERO)
        rmse = (self.diff_squares / count) ** 0.5 / scale
        return {"mare": self.greatest, "mere": self.total / count, "rmse": rmse}


def _ratio(diff: torch.Tensor, allowed: torch.Tensor) -> torch.Tensor:
    """Return diff / allowed, with 0 / 0 = 0."""
    return (diff / allowed).nan_to_num_(nan=0.0, posinf=torch.inf)
