"""`<op>_tuning_report.md`, and the figures that its page draws."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from pypto_op import __version__
from pypto_op.documents.writing import write_atomically
from pypto_op.modes import REGISTRY
from pypto_op.tuning import candidate_rows
from pypto_op.tuning.asking import GAIN
from pypto_op.tuning.ledger import Fate
from pypto_op.tuning.tune import Tuned

CANNOT_SAY = (
    "The cost model ranks variants of one kernel. Its figures are no device time: how far model and device agree is unknown "
    "until both are measured on the same kernels."
)
"""What stands beside every figure of the cost model."""


def sentences(tuned: Tuned) -> Iterator[str]:
    """Yield what came of it, a line each."""
    outcome, base = tuned.outcome, tuned.outcome.baseline
    fates = {fate: sum(one.fate is fate for one in outcome.candidates) for fate in Fate}
    told = ", ".join(f"{count} {fate}" for fate, count in fates.items() if count)
    yield (
        f"{len(outcome.candidates)} candidates ({told or 'none'}), {outcome.refused} more were against the limits; "
        f"{outcome.seconds:.0f} s of trials and {tuned.judging_seconds:.0f} s of judging, "
        f"with a budget of {tuned.budget_seconds:.0f} s; {outcome.ended}"
    )
    chosen = tuned.chosen
    if chosen is None:
        yield "the kernel stays as it is: no candidate is right, faster than the noise on all P0 shapes, and as well tested"
        if tuned.verdict is not None:
            yield f"the last one judged was refused: {tuned.verdict.reason}"
    else:
        gain = 1 / (chosen.ratio or 1)
        where = "the P0 shape" if len(tuned.labels) == 1 else f"the {len(tuned.labels)} P0 shapes"
        yield f"on {where}, candidate {chosen.number} takes {chosen.ratio:.3f} of the kernel's time: {gain:.2f} times faster"
        for case, label in tuned.labels.items():
            yield f"  {label}: {base.times[case]:.2f} -> {chosen.times[case]:.2f} {REGISTRY[tuned.mode].timing.unit}"
        others = tuned.verdict.others if tuned.verdict else {}
        if slower := {label: after / before for label, (before, after) in others.items() if after > before * (1 + GAIN)}:
            worst = max(slower, key=lambda label: slower[label])
            told = f"{worst} {slower[worst]:.2f} times as long"
            yield f"of {len(others)} other shapes of the suite {len(slower)} take longer: {told}"
        yield "it lies in the kernel's place, with a PASS" if tuned.written else "it was not written"
    if tuned.target_us is not None:
        yield f"target {tuned.target_us:g} us: {'met' if tuned.met else 'not met'}"


def summary(tuned: Tuned) -> dict[str, Any]:
    """Return what came of it, JSON-ready."""
    outcome, chosen, verdict = tuned.outcome, tuned.chosen, tuned.verdict
    return {
        "schema_version": 1,
        "op_name": tuned.ws.name,
        "tool": {"name": "pypto-op", "version": __version__},
        "created": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "mode": str(tuned.mode),
        "unit": REGISTRY[tuned.mode].timing.unit,
        "shapes": tuned.labels,
        "baseline_us": outcome.baseline.times,
        "chosen": None if chosen is None else chosen.number,
        "chosen_us": None if chosen is None else chosen.times,
        "ratio": None if chosen is None else chosen.ratio,
        "written": tuned.written,
        "target_us": tuned.target_us,
        "target_met": tuned.met,
        "others_us": {} if verdict is None else {label: list(times) for label, times in verdict.others.items()},
        "noise": tuned.noise,
        "choices": len(tuned.kernel.choices),
        "tried": outcome.tried,
        "resumed": tuned.resumed,
        "against_limits": outcome.refused,
        "search_seconds": round(outcome.seconds, 1),
        "judging_seconds": round(tuned.judging_seconds, 1),
        "budget_seconds": tuned.budget_seconds,
        "ended": outcome.ended,
        "importance": dict(outcome.importance),
        "mutants": None if verdict is None else {"compared": verdict.mutants, "killed": list(verdict.killed)},
        "candidates": [candidate_rows.row(one) for one in [outcome.baseline, *outcome.candidates]],
    }


def write(tuned: Tuned) -> list[Path]:
    """Write the report, and its figures beside the candidates; return where they lie."""
    ws = tuned.ws
    write_atomically(ws.tuning_report, markdown(tuned))
    result = ws.debug_dir / "tuning" / "result.json"
    write_atomically(result, json.dumps(summary(tuned), indent=1) + "\n")
    return [ws.tuning_report, result]


def markdown(tuned: Tuned) -> str:
    """Return the tuning report."""
    outcome, unit = tuned.outcome, REGISTRY[tuned.mode].timing.unit
    parts = [f"# {tuned.ws.name}: tuning report", ""]
    parts += [f"Made by `pypto-op tune` {__version__}. Mode `{tuned.mode}`; times in {unit}."]
    parts += [CANNOT_SAY] if tuned.mode.value == "sim" else []
    parts += ["", "## Result", "", *(f"- {line.strip()}" for line in sentences(tuned)), "", "## Times", ""]
    parts += ["| shape | before | after | ratio |", "|---|---|---|---|"]
    parts += _times(tuned)
    parts += ["", "## What was chosen", ""]
    parts += _chosen(tuned)
    parts += ["", "## What mattered", ""]
    parts += candidate_rows.shares(dict(outcome.importance))
    parts += ["", "## Every candidate", ""]
    parts += candidate_rows.table(outcome.candidates)
    return "\n".join(parts) + "\n"


def _times(tuned: Tuned) -> Iterator[str]:
    verdict = tuned.verdict
    if tuned.chosen is not None and verdict is not None and verdict.after:
        for case, before in verdict.before.items():
            after = verdict.after[case]
            yield f"| {verdict.labels[case]} | {before:.2f} | {after:.2f} | {after / before:.3f} |"
        for label, (before, after) in verdict.others.items():
            yield f"| {label}, no P0 shape | {before:.2f} | {after:.2f} | {after / before:.3f} |"
        return
    for case, label in tuned.labels.items():
        yield f"| {label} | {tuned.outcome.baseline.times[case]:.2f} | - | - |"


def _chosen(tuned: Tuned) -> Iterator[str]:
    chosen, verdict = tuned.chosen, tuned.verdict
    if chosen is None or verdict is None:
        yield "Nothing: the kernel stays as it is."
        return
    noise = 100 * verdict.noise
    yield f"The whole suite passed ({verdict.cases} cases, drawn shapes among them); noise of the clock {noise:.2f} %."
    if verdict.mutants:
        before, after = verdict.killed
        yield f"Of {before} planted faults that the suite sees in the kernel, it sees {after} in the candidate."
    yield from ("", "```diff", chosen.diff, "```")
