"""Collects times of runs, also of two kernels that take turns on the same inputs."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pypto_op.hashing import sha256_file
from pypto_op.judge.cases.subject import Subject
from pypto_op.judge.findings.records import CaseRecord
from pypto_op.modes import REGISTRY
from pypto_op.vocabulary import Mode, Status

Costs = list[tuple[int, Mapping[str, float | int]]]
"""Seed of the inputs, and the figures of a run on them."""

_DRAWS = 2000
_CONFIDENCE = 0.95


@dataclass
class Samples:
    """What runs of one kernel took."""

    _costs: dict[tuple[str, Mode], Costs] = field(default_factory=dict)
    _faults: dict[tuple[str, Mode], str] = field(default_factory=dict)

    def note(self, record: CaseRecord) -> None:
        """Take the figures of a case."""
        for mode, result in record.modes.items():
            key = (record.id, mode)
            self._costs.setdefault(key, []).extend((t.seed, t.cost) for t in result.trials if t.cost)
            if result.status is not Status.PASS and result.deciding is not None:
                self._faults[key] = f"{result.status}: {result.deciding.summary}"

    def costs(self, case: Mapping[str, Any], mode: Mode) -> Costs:
        """Return the figures of a case, in the order of runs."""
        return self._costs.get((str(case["id"]), mode), [])

    def fault(self, case: Mapping[str, Any], mode: Mode) -> str:
        """Return what went wrong in a case, "" for nothing."""
        return self._faults.get((str(case["id"]), mode), "")

    def times(self, case: Mapping[str, Any], mode: Mode) -> list[tuple[int, float]]:
        """Return seed and microseconds of each run of a case."""
        figure = REGISTRY[mode].timing.figure
        return [(seed, float(cost[figure])) for seed, cost in self.costs(case, mode) if figure in cost]


def spreads(times: Iterable[tuple[int, float]]) -> tuple[float | None, float | None]:
    """Return (noise, spread across inputs), each (maximum - minimum) / median.

    Noise is that of runs on equal inputs, the largest of any input's; None where each input ran once. Across inputs the
    medians of the inputs are compared; None with one input.
    """
    groups: dict[int, list[float]] = {}
    for seed, took in times:
        groups.setdefault(seed, []).append(took)
    repeated = [_spread(group) for group in groups.values() if len(group) > 1]
    medians = [statistics.median(group) for group in groups.values()]
    return max(repeated, default=None), _spread(medians) if len(medians) > 1 else None


def _spread(times: Sequence[float]) -> float:
    middle = statistics.median(times)
    return round((max(times) - min(times)) / middle, 6) if middle else 0.0


@dataclass
class Against:
    """A second kernel that is timed in turns with the first, on the same inputs."""

    subject: Subject  # it
    file: Path  # its file, as the user named it
    samples: Samples = field(default_factory=Samples)  # of its runs

    @classmethod
    def of(cls, subject: Subject, base: Path) -> Against:
        """Return a kernel to compare with, which has a PASS (`admission`)."""
        return cls(replace(subject, impl=base.resolve()), base)

    def order(self, subject: Subject, samples: Samples, turn: int) -> list[tuple[Subject, Samples]]:
        """Return whom a turn times, in which order: the one that begins changes, so that drift hits both."""
        both = [(self.subject, self.samples), (subject, samples)]
        return both if turn % 2 == 0 else both[::-1]

    def result(self, cases: Sequence[Mapping[str, Any]], modes: Iterable[Mode], samples: Samples) -> dict[str, Any]:
        """Return ratio, interval and A/A null of each case and mode, and the geometric mean of the ratios."""
        rows = [self._row(case, mode, samples) for case in cases for mode in modes]
        known = [float(row["ratio"]) for row in rows if row["ratio"]]
        return {
            "file": str(self.file),
            "sha256": sha256_file(self.file),
            "confidence": _CONFIDENCE,
            "geometric_mean": math.exp(statistics.fmean(map(math.log, known))) if known else None,
            "rows": rows,
        }

    def _row(self, case: Mapping[str, Any], mode: Mode, samples: Samples) -> dict[str, Any]:
        before = [took for _, took in self.samples.times(case, mode)]
        after = [took for _, took in samples.times(case, mode)]
        row = {"case_id": str(case["id"]), "mode": str(mode), "ratio": None, "low": None, "high": None, "null": None}
        if not before or not after or self.samples.fault(case, mode) or samples.fault(case, mode):
            return row | {"reason": self.samples.fault(case, mode) or samples.fault(case, mode) or "no time"}
        low, high = interval(before, after)
        half = before[::2], before[1::2]
        null = statistics.median(half[0]) / statistics.median(half[1]) if len(before) >= 4 else None
        ratio = statistics.median(after) / statistics.median(before)
        return row | {"ratio": ratio, "low": low, "high": high, "null": null, "reason": ""}


def interval(before: Sequence[float], after: Sequence[float]) -> tuple[float, float]:
    """Return the bootstrap interval of the ratio of two medians, at 95 %."""
    dice = random.Random(1)  # noqa: S311
    ratios = sorted(
        statistics.median(dice.choices(after, k=len(after))) / statistics.median(dice.choices(before, k=len(before)))
        for _ in range(_DRAWS)
    )
    tail = round((1 - _CONFIDENCE) / 2 * _DRAWS)
    return ratios[tail], ratios[-tail - 1]
