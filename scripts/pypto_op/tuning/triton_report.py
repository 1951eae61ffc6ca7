"""`{op}_tuning_report.md` of a Triton implementation, the same in JSON, and its page with pictures."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from pypto_op import __version__
from pypto_op.documents.writing import write_atomically
from pypto_op.triton.run.setup.project import Project
from pypto_op.triton.run.setup.targets import Target
from pypto_op.tuning import candidate_rows, search_page
from pypto_op.tuning.triton_tune import Tuned

_INTERPRETED = "These are times of Triton's interpreter on a processor: they say nothing about a device."


def sentences(tuned: Tuned) -> Iterator[str]:
    """Yield what came of it, a line each."""
    known = f", {tuned.resumed} known from an earlier sitting" if tuned.resumed else ""
    yield (
        f"{len(tuned.candidates)} candidates on {tuned.target}{known}: {tuned.timings} timings of {tuned.combinations} that "
        f"trying all options would take; {tuned.seconds:.0f} s; {tuned.ended}"
    )
    if tuned.chosen is None:
        yield "the implementation stays as it is: no candidate is right and faster beyond the noise on every shape"
        return
    placed = "it lies in the implementation's place, with a PASS" if tuned.written else "it was not written"
    yield f"candidate {tuned.chosen.number} is {tuned.gain or 1.0:.2f} times as fast; {placed}"
    if tuned.chosen.reason:
        yield tuned.chosen.reason


def summary(project: Project, tuned: Tuned) -> dict[str, Any]:
    """Return what came of it, JSON-ready."""
    return {
        "schema_version": 1,
        "op_name": project.op_name,
        "impl_name": project.impl_name,
        "tool": {"name": "pypto-op", "version": __version__},
        "created": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "target": tuned.target,
        "chosen": None if tuned.chosen is None else tuned.chosen.number,
        "gain": tuned.gain,
        "written": tuned.written,
        "timings": tuned.timings,
        "combinations": tuned.combinations,
        "resumed": tuned.resumed,
        "seconds": round(tuned.seconds, 1),
        "ended": tuned.ended,
        "importance": tuned.importance,
        "before_us": tuned.before.times,
        "candidates": [candidate_rows.row(one) for one in tuned.candidates],
    }


def write(project: Project, tuned: Tuned) -> list[Path]:
    """Write the report, its figures and its page; return where they lie."""
    write_atomically(project.tuning_report, markdown(project, tuned))
    result, pictures = project.tuning_folder / "result.json", project.tuning_folder / "tuning.html"
    write_atomically(result, json.dumps(summary(project, tuned), indent=1) + "\n")
    write_atomically(pictures, page(project, tuned))
    return [project.tuning_report, result, pictures]


def page(project: Project, tuned: Tuned) -> str:
    """Return the page: every trial, what mattered, before and after."""
    return search_page.search(
        search_page.Search(
            name=project.op_name,
            sentences=list(sentences(tuned)),
            before=tuned.before.times,
            chosen=tuned.chosen,
            gain=tuned.gain or 1.0,
            candidates=tuned.candidates,
            importance=tuned.importance,
            unit="microseconds, of the search's short timings",
            cannot_say=_INTERPRETED if tuned.target == Target.INTERPRET else "",
        )
    )


def markdown(project: Project, tuned: Tuned) -> str:
    """Return the report."""
    parts = [f"# {project.op_name}: tuning report", ""]
    parts += [
        f"Made by `pypto-op triton tune` {__version__} on `{tuned.target}`; times in microseconds, of the search's short timings."
    ]
    parts += ["", "## Result", "", *(f"- {line}" for line in sentences(tuned))]
    parts += ["", "## Times", "", "| shape | before | after | ratio |", "|---|---|---|---|"]
    for shape, before in tuned.before.times.items():
        after = tuned.chosen.times[shape] if tuned.chosen else None
        parts += [
            f"| {shape} | {before:.2f} | {after:.2f} | {after / before:.3f} |" if after else f"| {shape} | {before:.2f} | - | - |"
        ]
    if tuned.chosen is not None:
        parts += ["", "## What was chosen", "", "```diff", tuned.chosen.diff, "```"]
    parts += ["", "## What mattered", "", *candidate_rows.shares(tuned.importance)]
    parts += ["", "## Every candidate", "", *candidate_rows.table(tuned.candidates)]
    return "\n".join(parts) + "\n"
