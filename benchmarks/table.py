"""The result of a benchmark: a table of measured figures, each beside its target where it has one."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Row:
    """One measured thing.

    Attributes:
        what: what was measured, in words.
        values: the figures under the table's column names, in the table's unit.
        target: the figure that `judged` may not pass (or must reach, with `at_least`); None for a yardstick.
        judged: name of the column that the target is about.
        at_least: the target is a minimum.
    """

    what: str
    values: dict[str, float]
    target: float | None = None
    judged: str = "p95"
    at_least: bool = False

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None without a target."""
        if self.target is None:
            return None
        value = self.values[self.judged]
        return value >= self.target if self.at_least else value <= self.target


@dataclass
class Table:
    """A titled list of rows in one unit, with notes on how it was measured."""

    title: str
    unit: str
    rows: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Return the table as JSON-ready values."""
        rows = [{**asdict(row), "met": row.met} for row in self.rows]
        return {"title": self.title, "unit": self.unit, "rows": rows, "notes": self.notes}


def percentiles(samples: Sequence[float]) -> dict[str, float]:
    """Return min, p50 and p95 of at least one sample."""
    ordered = sorted(samples)
    p95 = ordered[min(len(ordered) - 1, round(0.95 * (len(ordered) - 1)))]
    return {"min": ordered[0], "p50": statistics.median(ordered), "p95": p95}
