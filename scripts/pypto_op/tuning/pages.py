"""The pictures: a search over time, what mattered, before and after; and the swimlane of each shape."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pypto_op import __version__
from pypto_op.documents.writing import write_atomically
from pypto_op.modes import REGISTRY
from pypto_op.report import words
from pypto_op.report.page import fill
from pypto_op.tuning import swimlanes
from pypto_op.tuning.ledger import Fate
from pypto_op.tuning.perf_words import sentences as told
from pypto_op.tuning.report import CANNOT_SAY, sentences
from pypto_op.workspace import OpWorkspace

if TYPE_CHECKING:
    from pypto_op.tuning.profile import Shape
    from pypto_op.tuning.tune import Tuned

_WIDTH, _HEIGHT = 1000, 260
_TOP, _LOW = 8.0, 0.05


def write_tuning(tuned: Tuned) -> Path:
    """Write eval/tuning.html and return where it lies."""
    page = tuned.ws.eval_dir / "tuning.html"
    write_atomically(page, tuning(tuned))
    return page


def tuning(tuned: Tuned) -> str:
    """Return the page of a search."""
    outcome = tuned.outcome
    longest = max(outcome.baseline.times.values())
    chosen = tuned.chosen
    return fill(
        "tuning.html.j2",
        op=tuned.ws.name,
        headline=f"{1 / (chosen.ratio or 1):.2f} times faster" if chosen else "unchanged",
        ok=chosen is not None,
        sentences=[line.strip() for line in sentences(tuned)],
        cannot_say=CANNOT_SAY if tuned.mode.value == "sim" else "",
        unit=REGISTRY[tuned.mode].timing.unit,
        width=_WIDTH,
        height=_HEIGHT,
        points=_points(tuned),
        best=_best_line(tuned),
        grid=[(round(_y(level), 1), f"{level:g}") for level in (4, 2, 1, 0.5, 0.25, 0.1)],
        importance=[(key, round(100 * share, 1)) for key, share in list(outcome.importance.items())[:10]],
        bars=[
            {
                "label": label,
                "before": outcome.baseline.times[case],
                "after": chosen.times[case] if chosen else None,
                "before_share": round(100 * outcome.baseline.times[case] / longest, 1),
                "after_share": round(100 * chosen.times[case] / longest, 1) if chosen else 0,
            }
            for case, label in tuned.labels.items()
        ],
        diff=chosen.diff if chosen else "",
        candidates=outcome.candidates,
        footer=_footer(),
    )


def _footer() -> str:
    return f"pypto-op {__version__}, page made {words.date(datetime.now(timezone.utc))}."


def _y(ratio: float) -> float:
    """Return the height of a ratio, on a logarithmic scale."""
    within = min(max(ratio, _LOW), _TOP)
    return _HEIGHT * (math.log(_TOP) - math.log(within)) / (math.log(_TOP) - math.log(_LOW))


def _x(number: int, total: int) -> float:
    return _WIDTH * number / max(1, total)


def _points(tuned: Tuned) -> list[dict[str, Any]]:
    total = len(tuned.outcome.candidates)
    rows = []
    for one in tuned.outcome.candidates:
        right = one.fate not in (Fate.WRONG, Fate.NO_RUN)
        told = f"{one.ratio:.3f}" if one.ratio is not None else one.reason[:120]
        change = "; ".join(f"{key} = {option}" for key, option in one.assignment.items())
        rows.append(
            {
                "x": round(_x(one.number, total), 1),
                "y": round(_y(one.ratio if right and one.ratio is not None else _TOP), 1),
                "kind": "chosen" if one is tuned.chosen else "right" if right else "wrong",
                "title": f"{one.number}, {one.origin}: {one.fate}, {told}. {change}",
            }
        )
    return rows


def _best_line(tuned: Tuned) -> str:
    """Return the best ratio so far, as the points of a polyline."""
    total, best, points = len(tuned.outcome.candidates), 1.0, [f"0,{_y(1.0):.1f}"]
    for one in tuned.outcome.candidates:
        points.append(f"{_x(one.number, total):.1f},{_y(best):.1f}")
        if one.fate in (Fate.SURVIVED, Fate.ACCEPTED) and one.ratio is not None and one.ratio < best:
            best = one.ratio
            points.append(f"{_x(one.number, total):.1f},{_y(best):.1f}")
    return " ".join(points)


def write_perf(ws: OpWorkspace, rows: Sequence[Shape]) -> Path:
    """Write eval/perf.html, and the swimlanes for the operator's report; return where the page lies."""
    page = ws.eval_dir / "perf.html"
    write_atomically(page, perf(ws, rows))
    swimlanes.store(ws, rows)
    return page


def perf(ws: OpWorkspace, rows: Sequence[Shape]) -> str:
    """Return the page of what bounds a kernel."""
    shapes = []
    for row in rows:
        lanes = [swimlanes.drawn(row, number) for number in range(len(row.launches))]
        shapes.append(
            {
                "label": row.label,
                "us": row.us,
                "bound": row.bound,
                "share": round(100 * row.share, 1),
                "lines": [line.strip() for line in told(row)],
                "levers": row.levers[:3],
                "lanes": lanes,
            }
        )
    return fill(
        "perf.html.j2",
        op=ws.name,
        shapes=shapes,
        cannot_say=CANNOT_SAY,
        colours=range(swimlanes.COLOURS),
        width=swimlanes.WIDTH,
        footer=_footer(),
    )
