"""The index: one page, or one table, over all operators of a workspace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from pypto_op import __version__
from pypto_op.errors import PyptoOpError
from pypto_op.modes import devices_first
from pypto_op.proof import evidence
from pypto_op.report import words
from pypto_op.report.page import fill
from pypto_op.state import store
from pypto_op.vocabulary import Mode, Stage, Status
from pypto_op.workspace import OpWorkspace, operators_in

_NO_VERDICT = "none yet"


@dataclass(frozen=True)
class Row:
    """One operator."""

    op: str  # its name
    stage: str  # where its state file says it stands; "not started" without one
    verdict: str  # status of the latest verdict, or "none yet"
    badge: str  # how the verdict is coloured: its status, STALE where it is not about the files that lie there, or NONE
    remark: str  # why the verdict does not count as it stands, or what is damaged; else empty
    cases: str  # passed and judged cases, "27 / 27"
    judged: datetime | None  # when the verdict was written, None without one
    speed: str  # times of the latest benchmark, slowest and fastest shape; empty without one
    page: str = ""  # address of the operator's own page, relative to the index; empty without one


def rows_of(workspace: Path) -> list[Row]:
    """Return a row for each operator of a workspace, in order of name; a damaged file is told in its row."""
    return [_row(ws) for ws in operators_in(workspace) if not ws.is_nobodys()]


def as_json(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return the rows for `--json`: times as ISO 8601."""
    return [{**asdict(row), "judged": row.judged.isoformat() if row.judged else None} for row in rows]


def render(workspace: Path, rows: Sequence[Row], *, now: datetime | None = None) -> str:
    """Return the index as HTML text; the addresses in it are relative to the folder `custom/`."""
    now = now or datetime.now(timezone.utc)
    shown = [
        {
            **asdict(row),
            "age": words.age(row.judged, now) if row.judged else "",
            "date": words.date(row.judged) if row.judged else "",
        }
        for row in rows
    ]
    counted = [("operators", len(rows)), *((f"verdict {s}", sum(r.badge == s for r in rows)) for s in ("PASS", "FAIL"))]
    rest = len(rows) - sum(number for label, number in counted if label != "operators")
    return fill(
        "index.html.j2",
        workspace=workspace.name,
        rows=shown,
        tiles=[{"value": str(number), "label": label} for label, number in [*counted, ("other, stale or none", rest)]],
        footer=f"pypto-op {__version__}, page made {words.date(now)}.",
    )


def _row(ws: OpWorkspace) -> Row:
    remarks: list[str] = []
    verdict, perf = _object(ws.report, remarks), _object(ws.perf_report, remarks)
    status, badge, cases, judged = _NO_VERDICT, "NONE", "", None
    if verdict is not None:
        status = str(verdict.get("status", "?"))
        badge = status if status in {str(s) for s in Status} else "STALE"
        cases = f"{verdict.get('cases_passed', '?')} / {verdict.get('cases_total', '?')}"
        judged = words.moment(verdict.get("created"))
        doubt = doubt_about(ws, verdict)
        if doubt:
            badge = "STALE"
            remarks.append(doubt)
    return Row(ws.name, _stage(ws, remarks), status, badge, "; ".join(remarks), cases, judged, _speed(ws, perf, remarks))


def _object(path: Path, remarks: list[str]) -> Mapping[str, Any] | None:
    if not path.is_file():
        return None
    try:
        return evidence.read_report(path)
    except PyptoOpError as error:
        remarks.append(f"{path.name} {error.problem}")
        return None


def doubt_about(ws: OpWorkspace, verdict: Mapping[str, Any]) -> str:
    """Return why a verdict is not evidence about the files that lie there; "" when it is."""
    if not evidence.check_seal(verdict):
        return "not sealed by this account's judge"
    k, total = verdict.get("up_to_module"), verdict.get("total_modules")
    phase = k if isinstance(k, int) and isinstance(total, int) and 0 < k < total else None
    stale = evidence.stale_hashes(verdict, evidence.file_hashes(ws, phase), ws)
    if stale:
        return f"stale: {', '.join(stale)} changed since"
    if not evidence.lay_there(verdict, ws, k=phase):
        return "of a file that lies elsewhere"
    return f"of phase M{phase} of {total}" if phase else ""


def _stage(ws: OpWorkspace, remarks: list[str]) -> str:
    try:
        state = store.load(ws).state
    except PyptoOpError as error:
        remarks.append(f"{ws.state.name} {error.problem}")
        return "unknown"
    if state is None:
        return "not started"
    stage = state["current_stage"]
    name = Stage(stage).name.replace("_", " ").lower()
    phase = state["stage5_phases"]["active_phase"] if stage == Stage.CONSTRUCTION else None
    return f"{stage} {name}" + (f", {phase}" if phase else "") + f": {state['stage_status'][str(stage)].replace('_', ' ')}"


def _speed(ws: OpWorkspace, perf: Mapping[str, Any] | None, remarks: list[str]) -> str:
    if perf is None:
        return ""
    try:
        timed = {mode: entry for mode, entry in perf["modes"].items() if entry["status"] == "timed"}
        mode = devices_first(Mode(word) for word in timed)[0]
        times = [float(r["median"]) for r in perf["per_shape_results"] if r["mode"] == mode and r["median"]]
        unit, now = str(timed[mode]["unit"]), evidence.file_hashes(ws)["impl"]
        old = "" if perf["hashes"]["impl"] == now else "; of an older kernel"
        span = words.number(min(times)) if len(times) == 1 else f"{words.number(min(times))} to {words.number(max(times))}"
    except (KeyError, TypeError, ValueError, AttributeError, IndexError):
        remarks.append(f"{ws.perf_report.name} holds no times")
        return ""
    return f"{span} {unit}{old}"
