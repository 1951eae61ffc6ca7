"""The HTML report: one self-contained page about one operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import jinja2

from pypto_op import __version__
from pypto_op.documents.targets import HTML_MARK
from pypto_op.judge.extent import left_out
from pypto_op.report import charts
from pypto_op.report.timeline import Event
from pypto_op.vocabulary import Status

_TEMPLATES = Path(__file__).resolve().parent / "templates"


@dataclass(frozen=True)
class HeatMap:
    """Where the error of one output lies.

    Attributes:
        title: the case and the verdict it belongs to.
        cells: error divided by what is allowed, largest per cell, rows by columns.
        note: one sentence on what to see.
    """

    title: str
    cells: Sequence[Sequence[float]]
    note: str


@dataclass
class Story:
    """Everything the page shows.

    Attributes:
        op: the operator's name.
        verdicts: title and evaluation report, oldest first; the last one is the operator's verdict.
        perf: the benchmark's result, or None.
        events: the timeline.
        heat_maps: where the error lies.
    """

    op: str
    verdicts: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    perf: Mapping[str, Any] | None = None
    events: list[Event] = field(default_factory=list)
    heat_maps: list[HeatMap] = field(default_factory=list)


def render(story: Story) -> str:
    """Return the page as HTML text; it fetches nothing and needs nothing beside it."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES), autoescape=True, undefined=jinja2.StrictUndefined
    )
    last = story.verdicts[-1][1] if story.verdicts else {}
    status = str(last.get("status", Status.SKIPPED))
    return environment.get_template("report.html.j2").render(
        mark=_trusted(HTML_MARK),
        version=__version__,
        op=story.op,
        status=status,
        headline=status if story.verdicts else "no verdict yet",
        tiles=_tiles(story, last),
        verdicts=[_verdict(title, report) for title, report in story.verdicts],
        heat_maps=[
            {
                "title": m.title,
                "svg": _trusted(charts.heat_map(m.cells, rows="row", columns="column")),
                "note": m.note,
            }
            for m in story.heat_maps
        ],
        cost_chart=_cost_chart(story.perf),
        events=story.events,
        footer=_footer(last),
    )


def _trusted(svg: str) -> Any:
    # Our own chart or mark, not user text: it must not be escaped.
    import markupsafe

    return markupsafe.Markup(svg)  # noqa: S704


def _tiles(story: Story, last: Mapping[str, Any]) -> list[dict[str, str]]:
    tiles = []
    if last:
        tiles.append(_counts(last))
        for mode, status in last["per_mode_status"].items():
            tiles.append({"value": str(status), "label": f"in {mode}"})
    refused = sum(event.kind.value == "refusal" for event in story.events)
    if story.events:
        tiles.append({"value": str(refused), "label": "refusals on the way"})
        end = max(event.at + event.seconds for event in story.events)
        tiles.append({"value": f"{end:.0f} s", "label": "from request to here"})
    return tiles


def _counts(report: Mapping[str, Any]) -> dict[str, str]:
    passed, total = report["cases_passed"], report["cases_total"]
    missing = report.get("selection", {}).get("not_judged", 0)
    if report["status"] == Status.PARTIAL:
        return {"value": f"{passed} / {total + missing}", "label": "cases passed; the others were not judged"}
    if report["status"] == Status.ERROR and passed == total:
        return {"value": "none", "label": "cases judged"}
    return {"value": f"{passed} / {total}", "label": "cases passed"}


def _number(value: Any) -> str:
    return "" if value is None else f"{value:.3g}" if isinstance(value, (int, float)) else str(value)


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
                "max_abs": _number(check.get("max_abs_diff")),
                "max_rel": _number(check.get("max_rel_diff")),
                "violation": _violation(detail, leaves),
                "share": _number(_largest(leaves, "fail_fraction")),
            }
        )
    return rows


def _left(check: Mapping[str, Any]) -> str:
    """Say which fresh seeds were left for another, "" where none was."""
    seeds = ", ".join(map(str, check.get("left_draws", [])))
    return f"judged on another draw: the golden's sums cancel with seed {seeds}" if seeds else ""


def _violation(detail: Mapping[str, Any], leaves: Sequence[Mapping[str, Any]]) -> str:
    """Return the share of the tolerance that the error took; where a case failed within it, what failed instead."""
    share = _largest(leaves, "max_violation")
    if detail.get("status") in (Status.FAIL, Status.ERROR) and (share is None or share <= 1):
        return ", ".join(detail.get("reasons", []))
    return _number(share)


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


def _cost_chart(perf: Mapping[str, Any] | None) -> Any:
    rows = (perf or {}).get("per_shape_results", [])
    shapes = [row for row in rows if row["mode"] == "sim" and row["median"]]
    if not shapes:
        return None
    return _trusted(
        charts.cost_bars(
            [str(row["label"]) for row in shapes],
            [float(row["median"]) for row in shapes],
            [100 * row["cost"]["utilisation"] if "utilisation" in row["cost"] else None for row in shapes],
        )
    )


def _footer(report: Mapping[str, Any]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in report.get("versions", {}).items())
    made = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    return f"pypto-op {__version__}, {made}. {versions}"
