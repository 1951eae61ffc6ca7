"""The HTML page of a result; it shares the frame and the style of the reports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pypto_op.evals.result import described
from pypto_op.report.page import fill


def render(found: Mapping[str, Any]) -> str:
    """Return the page as HTML text; it fetches nothing."""
    total, plan = found["totals"], found["plan"]
    tiles = [
        {"value": _share(total["solved"]), "label": "solved (95 % interval)"},
        {"value": _share(total["hard"]), "label": "of the hard ones"},
        {"value": _share(total["honest"]), "label": "honest about the end"},
        {"value": str(total["breaches"]["refused"]), "label": "calls that the guard refused"},
        {"value": str(total["breaches"]["leaks"]), "label": "hidden goldens seen"},
        {"value": str(total["breaches"]["broken"]), "label": "runs that an agent ended"},
        {"value": _share(total["strength"]), "label": "planted faults that the team's suites refused"},
    ]
    tiles += [{"value": _number(value), "label": f"{name}, median"} for name, value in total["medians"].items()]
    families = [{"family": name, "share": _share(share)} for name, share in total["families"].items()]
    return fill(
        "eval.html.j2",
        title=f"{plan['arm']}, {plan['runner']}",
        tiles=tiles,
        families=families,
        rows=[_row(row, found["requests"][row["request"]]) for row in found["trials"]],
        compared=_compared(found.get("compared")),
        footer=f"{described(found)}, made {found['made']}.",
    )


def _row(row: Mapping[str, Any], request: Mapping[str, Any]) -> dict[str, str]:
    verdict = row.get("verdict") or {}
    strength = (row.get("strength") or {}).get("score")
    return {
        "request": f"{row['request']} ({row['trial']})",
        "family": f"{request['family']}, {request['difficulty']}{', hard' if request['hard'] else ''}",
        "badge": "NONE" if row["void"] else "PASS" if row["solved"] else "FAIL",
        "word": "void" if row["void"] else "solved" if row["solved"] else "not solved",
        "remark": row["void"] or row["why"],
        "cases": f"{verdict['cases_passed']} / {verdict['cases_total']}" if verdict else "",
        "time": f"{_number(verdict.get('time'))} {verdict['unit']}" if verdict.get("time") is not None else "",
        "strength": "" if strength is None else f"{100 * strength:.0f} %",
        "minutes": _number(row["minutes"]),
        "tokens": _number(row["tokens"]),
        "dollars": _number(row["dollars"]),
    }


def _compared(found: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if not found:
        return None
    gap = found["solved"]
    said = "no trial to compare" if gap is None else f"{gap[0]:+.2f} solved, 95 % interval {gap[1]:+.2f} to {gap[2]:+.2f}"
    said = said if found["sure"] else f"{said}: may be chance"
    if altered := found["altered"]:
        said += f"; not compared, since the request itself is another now: {', '.join(altered)}"
    rows = [{"request": name, "ours": _share(a), "base": _share(b)} for name, (a, b) in found["changed"].items()]
    costs = [{"what": name, "ours": _number(a), "base": _number(b)} for name, (a, b) in found["medians"].items()]
    return {"base": found["base"], "said": said, "rows": rows, "costs": costs}


def _share(share: Mapping[str, Any]) -> str:
    return f"{share['hits']} / {share['total']} ({share['low']:.2f} to {share['high']:.2f})" if share["total"] else "none"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:g}"
