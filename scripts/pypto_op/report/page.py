"""The HTML report: one self-contained page about one operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import cache
from pathlib import Path
from typing import Any

import jinja2

from pypto_op import __version__
from pypto_op.documents.targets import HTML_MARK
from pypto_op.judge.cases.extent import left_out
from pypto_op.modes import COST_MODEL, REGISTRY
from pypto_op.report import maps, words
from pypto_op.report.maps import HeatMap
from pypto_op.report.timeline import Event
from pypto_op.vocabulary import Status

_TEMPLATES = Path(__file__).resolve().parent / "templates"


@dataclass
class Story:
    """Everything the page shows."""

    op: str  # the operator's name
    # title and evaluation report, oldest first; the last one is the operator's verdict
    verdicts: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    perf: Mapping[str, Any] | None = None  # the benchmark's result, or None
    events: list[Event] = field(default_factory=list)  # the timeline
    heat_maps: list[HeatMap] = field(default_factory=list)  # where the error lies
    begun: datetime | None = None  # when the timeline begins, or None where nobody noted it
    swimlanes: Mapping[str, Any] | None = None  # what is drawn of the P0 shapes' longest launches, or None (`sources.swimlanes`)

    @property
    def seconds(self) -> float:
        """Seconds from the first event to the end of the last; 0 without events."""
        return max((event.at + event.seconds for event in self.events), default=0.0)


def render(story: Story) -> str:
    """Return the page as HTML text; it fetches nothing and needs nothing beside it."""
    last = story.verdicts[-1][1] if story.verdicts else {}
    status = str(last.get("status", Status.SKIPPED))
    return fill(
        "report.html.j2",
        op=story.op,
        status=status,
        headline=status if story.verdicts else "no verdict yet",
        facts=_facts(story, last),
        tiles=_tiles(story, last),
        verdicts=[_verdict(title, report) for title, report in story.verdicts],
        heat_maps=[maps.drawn(heat_map) for heat_map in story.heat_maps],
        legend=maps.legend(),
        costs=_costs(story.perf),
        swimlanes=story.swimlanes,
        events=story.events,
        footer=_footer(last),
    )


def fill(template: str, **values: Any) -> str:
    """Return a page of the folder `templates`, filled in; user text is escaped."""
    import markupsafe

    # Our own mark, not user text: it must not be escaped.
    return _environment().get_template(template).render(mark=markupsafe.Markup(HTML_MARK), version=__version__, **values)  # noqa: S704


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES), autoescape=True, undefined=jinja2.StrictUndefined
    )
    environment.filters["duration"] = words.duration
    return environment


def _facts(story: Story, last: Mapping[str, Any]) -> list[str]:
    """Return the sentences under the title: when the operator was begun, how long its steps took, when it was judged."""
    facts = []
    if story.begun is not None:
        facts.append(f"Begun {words.date(story.begun)}; {words.duration(story.seconds)} from the first step to the last.")
    judged = words.moment(last.get("created"))
    if judged is not None:
        facts.append(f"Judged {words.date(judged)} in {words.duration(float(last.get('seconds') or 0))}.")
    return facts


def _tiles(story: Story, last: Mapping[str, Any]) -> list[dict[str, str]]:
    tiles = []
    if last:
        tiles.append(_counts(last))
        for mode, status in last["per_mode_status"].items():
            tiles.append({"value": str(status), "label": f"in {mode}"})
    refused = sum(event.kind.value == "refusal" for event in story.events)
    if story.events:
        tiles.append({"value": str(refused), "label": "refusals on the way"})
        tiles.append({"value": words.duration(story.seconds), "label": "from request to here"})
    return tiles


def _counts(report: Mapping[str, Any]) -> dict[str, str]:
    passed, total = report["cases_passed"], report["cases_total"]
    missing = report.get("selection", {}).get("not_judged", 0)
    if report["status"] == Status.PARTIAL:
        return {"value": f"{passed} / {total + missing}", "label": "cases passed; the others were not judged"}
    if report["status"] == Status.ERROR and passed == total:
        return {"value": "none", "label": "cases judged"}
    return {"value": f"{passed} / {total}", "label": "cases passed"}


def _verdict(title: str, report: Mapping[str, Any]) -> dict[str, Any]:
    rows = [row for check in report["checks"] for row in _rows(check)]
    failure = report.get("first_failure") or {}
    caveats = [c for mode in report.get("modes", {}).values() for c in mode.get("caveats", [])]
    return {
        "title": title,
        "status": report["status"],
        "summary": failure.get("summary") or (report.get("error") or {}).get("message") or left_out(report),
        "rows": rows,
        "caveats": ["Limits of this verdict: " + "; ".join(caveats)] if caveats else [],
        "binding": _binding(report),
    }


def _rows(check: Mapping[str, Any]) -> list[dict[str, Any]]:
    rows = []
    statuses = check["per_mode_status"]
    judged = {mode: status for mode, status in statuses.items() if status != Status.SKIPPED}
    # A mode that this machine lacks is told once, at the top of the page, not once a case.
    for mode, status in (judged or statuses).items():
        detail = check.get("modes", {}).get(mode, {})
        leaves = detail.get("per_tensor", [])
        rows.append(
            {
                "case": check["id"],
                "level": check["level"],
                "mode": mode,
                "status": str(status),
                "reason": detail.get("reason") or _left(check),
                "max_abs": words.number(check.get("max_abs_diff")),
                "max_rel": words.number(check.get("max_rel_diff")),
                "violation": _violation(detail, leaves),
                "share": words.number(_largest(leaves, "fail_fraction")),
            }
        )
    return rows


def _left(check: Mapping[str, Any]) -> str:
    """Say which fresh seeds were left for another, "" where none was."""
    left, alike = (", ".join(map(str, check.get(key, []))) for key in ("left_draws", "alike_draws"))
    told = [f"with seed {left} honest rounding takes too much of the tolerance"] if left else []
    told += [f"seed {alike} repeats an input of the case's own seed by chance"] if alike else []
    return f"judged on another draw: {'; '.join(told)}" if told else ""


def _violation(detail: Mapping[str, Any], leaves: Sequence[Mapping[str, Any]]) -> str:
    """Return the share of the tolerance that the error took; where a case failed within it, what failed instead."""
    share = _largest(leaves, "max_violation")
    if detail.get("status") in (Status.FAIL, Status.ERROR) and (share is None or share <= 1):
        return ", ".join(detail.get("reasons", []))
    return words.number(share)


def _largest(leaves: Sequence[Mapping[str, Any]], key: str) -> float | None:
    numbers = [leaf[key] for leaf in leaves if leaf.get(key) is not None]
    return max(numbers, default=None)


def _binding(report: Mapping[str, Any]) -> str:
    lines = [f"{name:<12} sha256 {digest}" for name, digest in report.get("hashes", {}).items()]
    lines += [f"{name:<12} {version}" for name, version in report.get("versions", {}).items()]
    policy = report.get("policy") or {}
    if policy:
        lines.append(f"{'policy':<12} {policy.get('name')}@{policy.get('version')}")
    return "\n".join(lines)


def _costs(perf: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """Return the bars of the cost model: label, time in microseconds, its share of the longest, busy cores in percent."""
    rows = (perf or {}).get("per_shape_results", [])
    modelled = {str(mode) for mode, place in REGISTRY.items() if place.timing.method == COST_MODEL}
    shapes = [row for row in rows if row["mode"] in modelled and row["median"]]
    longest = max((float(row["median"]) for row in shapes), default=0.0)
    return [
        {
            "label": str(row["label"]),
            "time": words.number(float(row["median"])),
            "share": round(100 * float(row["median"]) / longest, 1),
            "busy": f"{100 * row['cost']['utilisation']:.0f} %" if row["cost"].get("utilisation") is not None else "",
        }
        for row in shapes
    ]


def _footer(report: Mapping[str, Any]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in report.get("versions", {}).items())
    return f"pypto-op {__version__}, page made {words.date(datetime.now(timezone.utc))}. {versions}"
