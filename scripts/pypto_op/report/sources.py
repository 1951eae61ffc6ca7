"""What a page about an operator is made from: its journal and the error maps of its latest verdict."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pypto_op.report.page import HeatMap
from pypto_op.report.timeline import Event, Kind
from pypto_op.state import journal
from pypto_op.workspace import OpWorkspace

_MAPS_SHOWN = 4
_VERDICT_ACTIONS = ("record_verdict", "complete_phase", "fail_phase")


def history(ws: OpWorkspace) -> list[Event]:
    """Return the state journal as a timeline; [] where there is none.

    Raises:
        ContractError: a line of the journal is damaged or was changed.
    """
    if not ws.journal.is_file():
        return []
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
    return events


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


def error_maps(ws: OpWorkspace, verdict: Mapping[str, Any]) -> list[HeatMap]:
    """Return the error maps that belong to this verdict, failing cases first; [] when none were asked for."""
    maps: list[tuple[bool, HeatMap]] = []
    for check in verdict["checks"]:
        path = ws.error_map(str(check["id"]))
        if not path.is_file():
            continue
        data = json.loads(path.read_text(encoding="utf-8"))
        if data.get("impl") != verdict["hashes"].get("impl"):
            continue
        passed = check["status"] == "PASS"
        note = f"Output {data['output']} in {data['mode']}: error divided by what is allowed."
        maps.append((passed, HeatMap(str(check["id"]), data["cells"], note)))
    maps.sort(key=lambda pair: pair[0])
    return [heat_map for _, heat_map in maps[:_MAPS_SHOWN]]
