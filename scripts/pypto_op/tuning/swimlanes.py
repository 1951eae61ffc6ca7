"""Swimlanes: what is drawn of a launch, on the page of `pypto-op perf` and in the operator's report."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pypto_op.documents.writing import write_atomically
from pypto_op.perf.lever import place
from pypto_op.proof import evidence
from pypto_op.tuning.report import CANNOT_SAY
from pypto_op.workspace import OpWorkspace

if TYPE_CHECKING:
    from pypto_op.tuning.profile import Shape

WIDTH, _LANE = 1000, 12
_MOST_TASKS = 6000
COLOURS = 8


def store(ws: OpWorkspace, rows: Sequence[Shape]) -> None:
    """Keep the longest launch of each shape for the report, with the hash of the kernel that it is of."""
    shapes = []
    for row in rows:
        longest = max(range(len(row.launches)), key=lambda number: row.launches[number].us)
        shapes.append({"label": row.label, "lane": drawn(row, longest)})
    kept = {
        "impl": evidence.file_hashes(ws)["impl"],
        "width": WIDTH,
        "colours": list(range(COLOURS)),
        "caveat": CANNOT_SAY,
        "shapes": shapes,
    }
    write_atomically(ws.swimlanes, json.dumps(kept))


def drawn(row: Shape, number: int) -> dict[str, Any]:
    """Return what a launch's swimlane is drawn from: used cores only, tasks as bars, the critical path marked."""
    launch, analysis = row.launches[number], row.analyses[number]
    span = launch.us or 1.0
    colour = {leaf.hash: i % COLOURS for i, leaf in enumerate(analysis.leaves)}
    places = {leaf.hash: place(leaf) for leaf in analysis.leaves}
    path = {task.name for task in analysis.path}
    used = [core for core, tasks in launch.lanes.items() if tasks]
    heights = {core: i * _LANE for i, core in enumerate(used)}
    shown = sorted(launch.tasks, key=lambda task: (task.name not in path, -task.seconds))[:_MOST_TASKS]
    return {
        "number": number + 1,
        "us": round(launch.us, 2),
        "height": len(used) * _LANE,
        "cores": used,
        "left_out": len(launch.tasks) - len(shown),
        "tasks": [
            {
                "x": round(WIDTH * task.start / span, 2),
                "y": heights[task.core] + 1,
                "w": round(max(0.6, WIDTH * task.seconds / span), 2),
                "colour": colour[task.leaf],
                "critical": task.name in path,
                "title": f"{task.core}: {task.start:.2f} to {task.end:.2f} µs, {places[task.leaf]}",
            }
            for task in sorted(shown, key=lambda task: task.start)
        ],
        "legend": [
            (colour[leaf.hash], f"{places[leaf.hash]}: {leaf.tasks} x {leaf.mean_us:.2f} µs") for leaf in analysis.leaves[:12]
        ],
    }
