"""The figures of a benchmark: medians, spreads, the confidence interval of a ratio, the classes of the speed-ups."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Sequence
from typing import Any

_RESAMPLES = 1000
_LEVEL = 0.95
"""Of the confidence interval: percentile bootstrap over the rounds."""
CLASSES = ("none", "nan", "inf", "negative", "zero")
"""Classes of a speed-up that does not count, in the order in which they are tried."""


def summary(times: Sequence[float]) -> dict[str, float]:
    """Return median, mean, least, greatest, and the spread: interquartile range over median."""
    ordered = sorted(times)
    median = statistics.median(ordered)
    if len(ordered) < 2:
        spread = 0.0
    else:
        quarters = statistics.quantiles(ordered, n=4, method="inclusive")
        spread = (quarters[2] - quarters[0]) / median if median else 0.0
    return {
        "median_ms": median,
        "mean_ms": statistics.fmean(ordered),
        "min_ms": ordered[0],
        "max_ms": ordered[-1],
        "spread": spread,
    }


def ratio_interval(rounds: Sequence[tuple[Sequence[float], Sequence[float]]]) -> dict[str, float] | None:
    """Return the median over the rounds of median(first) / median(second), with its bootstrap interval.

    Args:
        rounds: per round the times of both sides, taken one right after the other.
    """
    ratios = [statistics.median(one) / statistics.median(other) for one, other in rounds if one and other and min(other) > 0]
    if not ratios:
        return None
    draw = random.Random(0)
    medians = sorted(statistics.median(draw.choices(ratios, k=len(ratios))) for _ in range(_RESAMPLES))
    low = medians[int((1 - _LEVEL) / 2 * (_RESAMPLES - 1))]
    high = medians[math.ceil((1 + _LEVEL) / 2 * (_RESAMPLES - 1))]
    return {"ratio": statistics.median(ratios), "low": low, "high": high}


def operators_of(rows: Sequence[dict[str, Any]], side: str) -> dict[str, float]:
    """Return the microseconds of the device by kernel: the mean over shapes that passed; absent is 0."""
    found = [row[side]["operators"] for row in rows if row["status"] == "pass" and (row[side] or {}).get("operators")]
    names = dict.fromkeys(name for one in found for name in one)
    return {name: sum(one.get(name, 0.0) for one in found) / len(found) for name in names}


def classify(speedup: Any) -> str:
    """Return the class of a speed-up: none, nan, inf, negative, zero or valid."""
    if speedup is None or isinstance(speedup, (str, bytes, list, dict)):
        return "none"
    if math.isnan(speedup):
        return "nan"
    if math.isinf(speedup):
        return "inf"
    if speedup < 0:
        return "negative"
    return "zero" if speedup == 0 else "valid"


def overall(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the counts, the lists of odd shapes and the geometric mean over the valid ones.

    A row that passed and whose speed-up is odd counts as passed; its speed-up becomes None.
    """
    passing = [row for row in rows if row["status"] == "pass"]
    odd: dict[str, list[int]] = {name: [] for name in CLASSES}
    logs = []
    for row in passing:
        kind = classify(row["speedup_vs_torch"])
        if kind == "valid":
            logs.append(math.log(row["speedup_vs_torch"]))
            continue
        odd[kind].append(row["case_idx"])
        row["speedup_vs_torch"] = None
    return {
        "total_cases": len(rows),
        "passed_cases": len(passing),
        "failed_cases": len(rows) - len(passing),
        **{f"{name}_indices": indices for name, indices in odd.items()},
        "speedup_vs_torch": round(math.exp(statistics.fmean(logs)), 4) if logs else None,
    }


def mean_of(rows: Sequence[dict[str, Any]], side: str, key: str) -> float | None:
    """Return the arithmetic mean of a figure over the rows that passed and have it."""
    values = [row[side][key] for row in rows if row["status"] == "pass" and row[side] and row[side].get(key) is not None]
    return round(statistics.fmean(values), 4) if values else None
