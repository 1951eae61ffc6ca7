"""What a page about an operator is made from: its journal and the error maps of its latest verdict."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from pypto_op.errors import ContractError
from pypto_op.report.maps import HeatMap, from_file, telling
from pypto_op.report.timeline import Event, Kind
from pypto_op.state import journal
from pypto_op.workspace import OpWorkspace, to_run

_MAPS_SHOWN = 4
_VERDICT_ACTIONS = ("record_verdict", "complete_phase", "fail_phase")


def history(ws: OpWorkspace) -> tuple[datetime | None, list[Event]]:
    """Return the state journal as a timeline and when it begins; (None, []) where there is none.

    Raises:
        ContractError: a line of the journal is damaged or was changed.
    """
    if not ws.journal.is_file():
        return None, []
    events: list[Event] = []
    begun: datetime | None = None
    for line in journal.read(ws.journal):
        when = datetime.fromisoformat(line.facts["time"])
        begun = begun or when
        args: Mapping[str, Any] = line.args
        shown = " ".join([line.action, *(str(args[n]) for n in ("stage", "phase", "target_stage") if n in args)])
        detail = str(args.get("reason") or args.get("last_error") or "")
        at = (when - begun).total_seconds()
        events.append(Event(at, 0.0, line.facts["by"], _kind(line.action, line.facts), shown, detail))
    return begun, events


def _kind(action: str, facts: Mapping[str, Any]) -> Kind:
    if action not in _VERDICT_ACTIONS:
        return Kind.TRANSITION
    verdict = facts.get("verdict")
    status = verdict.get("status") if isinstance(verdict, Mapping) else None
    if status == "PARTIAL":
        return Kind.NOTE
    if status == "PASS" or action == "complete_phase":
        return Kind.VERDICT_PASS
    return Kind.VERDICT_FAIL


def error_maps(ws: OpWorkspace, verdict: Mapping[str, Any], cases: Collection[str] | None = None) -> list[HeatMap]:
    """Return the error maps that belong to this verdict; [] when none were asked for.

    Args:
        verdict: the evaluation report that the maps were made beside.
        cases: only these cases; all when None.

    Returns:
        At most four, failing cases first, among them those that say most about where the fault lies.
    """
    found: list[tuple[bool, HeatMap]] = []
    for check in verdict["checks"]:
        case = str(check["id"])
        path = ws.error_map(case)
        if not path.is_file() or (cases is not None and case not in cases):
            continue
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            if data["impl"] == verdict["hashes"].get("impl") and data["cells"] and data["cells"][0]:
                found.append((check["status"] == "PASS", from_file(data, check, case)))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            raise ContractError(
                "is no error map", file=path, remedy=f"{to_run('verify --error-maps', ws.root)} again, or delete the file"
            ) from None
    found.sort(key=lambda pair: telling(pair[1]), reverse=True)
    found.sort(key=lambda pair: pair[0])
    return [heat_map for _, heat_map in found[:_MAPS_SHOWN]]


def swimlanes(ws: OpWorkspace, verdict: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return what `pypto-op perf` drew of the kernel that this verdict is about; None where that was another, or none.

    Raises:
        ContractError: the file is damaged.
    """
    if not ws.swimlanes.is_file():
        return None
    try:
        data = json.loads(ws.swimlanes.read_text(encoding="utf-8"))
        of_this = data["impl"] == verdict["hashes"].get("impl")
        return data if of_this and data["shapes"] else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise ContractError("holds no swimlanes", file=ws.swimlanes, remedy=f"{to_run('perf', ws.root)} again") from None
