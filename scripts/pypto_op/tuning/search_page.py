"""The page of a search, of a PyPTO kernel or a Triton implementation: trials over time, what mattered, before and after."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from pypto_op import __version__
from pypto_op.report import words
from pypto_op.report.page import fill
from pypto_op.tuning import candidate_rows
from pypto_op.tuning.ledger import Candidate, Fate

_WIDTH, _HEIGHT = 1000, 260
_TOP, _LOW = 8.0, 0.05


@dataclass(frozen=True)
class Search:
    """What the page shows."""

    name: str  # of the operator
    sentences: Sequence[str]  # what came of the search
    before: Mapping[str, float]  # case -> time of the kernel itself, in `unit`
    chosen: Candidate | None  # the accepted candidate, or None
    gain: float  # times as fast as before; 1 without a chosen one
    candidates: Sequence[Candidate]  # in the order of trials
    importance: Mapping[str, float]  # choice -> its share of the differences, 0 to 1, the largest first
    unit: str  # of all times, as people read it
    labels: Mapping[str, str] = field(default_factory=dict)  # case -> its name on the page; without one the case's own
    cannot_say: str = ""  # what these times cannot say; "" on a device


def search(shown: Search) -> str:
    """Return the page."""
    chosen = shown.chosen
    return fill(
        "tuning.html.j2",
        op=shown.name,
        headline=f"{shown.gain:.2f} times faster" if chosen else "unchanged",
        ok=chosen is not None,
        sentences=shown.sentences,
        cannot_say=shown.cannot_say,
        unit=shown.unit,
        width=_WIDTH,
        height=_HEIGHT,
        points=_points(shown),
        best=_best_line(shown.candidates),
        grid=[(round(_y(level), 1), f"{level:g}") for level in (4, 2, 1, 0.5, 0.25, 0.1)],
        importance=[(key, round(100 * share, 1)) for key, share in list(shown.importance.items())[:10]],
        bars=_bars(shown),
        diff=chosen.diff if chosen else "",
        candidates=shown.candidates,
        footer=footer(),
    )


def footer() -> str:
    """Return who made a page, and when."""
    return f"pypto-op {__version__}, page made {words.date(datetime.now(timezone.utc))}."


def _bars(shown: Search) -> list[dict[str, Any]]:
    longest = max(shown.before.values())
    chosen = shown.chosen
    return [
        {
            "label": shown.labels.get(case, case),
            "before": before,
            "after": chosen.times[case] if chosen else None,
            "before_share": round(100 * before / longest, 1),
            "after_share": round(100 * chosen.times[case] / longest, 1) if chosen else 0,
        }
        for case, before in shown.before.items()
    ]


def _y(ratio: float) -> float:
    """Return the height of a ratio, on a logarithmic scale."""
    within = min(max(ratio, _LOW), _TOP)
    return _HEIGHT * (math.log(_TOP) - math.log(within)) / (math.log(_TOP) - math.log(_LOW))


def _x(number: int, total: int) -> float:
    return _WIDTH * number / max(1, total)


def _points(shown: Search) -> list[dict[str, Any]]:
    total = len(shown.candidates)
    rows = []
    for one in shown.candidates:
        right = one.fate not in (Fate.WRONG, Fate.NO_RUN)
        told = f"{one.ratio:.3f}" if one.ratio is not None else one.reason[:120]
        rows.append(
            {
                "x": round(_x(one.number, total), 1),
                "y": round(_y(one.ratio if right and one.ratio is not None else _TOP), 1),
                "kind": "chosen" if one is shown.chosen else "right" if right else "wrong",
                "title": f"{one.number}, {one.origin}: {one.fate}, {told}. {candidate_rows.change(one)}",
            }
        )
    return rows


def _best_line(candidates: Sequence[Candidate]) -> str:
    """Return the best ratio so far, as the points of a polyline."""
    total, best, points = len(candidates), 1.0, [f"0,{_y(1.0):.1f}"]
    for one in candidates:
        points.append(f"{_x(one.number, total):.1f},{_y(best):.1f}")
        if one.fate in (Fate.SURVIVED, Fate.ACCEPTED) and one.ratio is not None and one.ratio < best:
            best = one.ratio
            points.append(f"{_x(one.number, total):.1f},{_y(best):.1f}")
    return " ".join(points)
