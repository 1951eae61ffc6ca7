"""The pictures of one operator: its search, and what bounds it with the swimlane of each shape."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pypto_op.documents.writing import write_atomically
from pypto_op.modes import REGISTRY
from pypto_op.report.page import fill
from pypto_op.tuning import search_page, swimlanes
from pypto_op.tuning.perf_words import sentences as told
from pypto_op.tuning.report import CANNOT_SAY, sentences
from pypto_op.workspace import OpWorkspace

if TYPE_CHECKING:
    from pypto_op.tuning.profile import Shape
    from pypto_op.tuning.tune import Tuned


def write_tuning(tuned: Tuned) -> Path:
    """Write eval/tuning.html and return where it lies."""
    page = tuned.ws.eval_dir / "tuning.html"
    write_atomically(page, tuning(tuned))
    return page


def tuning(tuned: Tuned) -> str:
    """Return the page of a search."""
    outcome = tuned.outcome
    return search_page.search(
        search_page.Search(
            name=tuned.ws.name,
            sentences=[line.strip() for line in sentences(tuned)],
            before=outcome.baseline.times,
            chosen=tuned.chosen,
            gain=1 / (tuned.chosen.ratio or 1) if tuned.chosen else 1.0,
            candidates=outcome.candidates,
            importance=outcome.importance,
            unit=REGISTRY[tuned.mode].timing.unit,
            labels=tuned.labels,
            cannot_say=CANNOT_SAY if tuned.mode.value == "sim" else "",
        )
    )


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
        footer=search_page.footer(),
    )
