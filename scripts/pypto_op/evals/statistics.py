"""Shares with their intervals: Wilson's for one, Newcombe's for the difference of two."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

_Z = 1.959963984540054
"""Quantile of the 95 % interval."""


@dataclass(frozen=True)
class Share:
    """`hits` of `total`, and the ends of its 95 % interval; without any trial everything is possible."""

    hits: int
    total: int

    @property
    def value(self) -> float | None:
        """The share; None without a trial."""
        return self.hits / self.total if self.total else None

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's interval."""
        if not self.total:
            return 0.0, 1.0
        n, p = self.total, self.hits / self.total
        middle = (p + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
        half = _Z / (1 + _Z**2 / n) * sqrt(p * (1 - p) / n + _Z**2 / (4 * n * n))
        return max(0.0, middle - half), min(1.0, middle + half)

    def as_dict(self) -> dict[str, float | int | None]:
        """Return the share as JSON data."""
        low, high = self.interval
        return {"hits": self.hits, "total": self.total, "share": self.value, "low": round(low, 4), "high": round(high, 4)}


def difference(ours: Share, theirs: Share) -> tuple[float, float, float] | None:
    """Return our share minus theirs, with Newcombe's 95 % interval; None where one of them has no trial."""
    if ours.value is None or theirs.value is None:
        return None
    (low, high), (their_low, their_high) = ours.interval, theirs.interval
    gap = ours.value - theirs.value
    below = sqrt((ours.value - low) ** 2 + (their_high - theirs.value) ** 2)
    above = sqrt((high - ours.value) ** 2 + (theirs.value - their_low) ** 2)
    return gap, gap - below, gap + above
