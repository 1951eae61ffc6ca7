"""From the predecessor's state file (2.0) to this one: each claim passes the gates before it counts."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from pypto_op.errors import ContractError, InfraError, Refused
from pypto_op.hashing import read_json
from pypto_op.state.service import transition
from pypto_op.state.store import OLD_VERSION
from pypto_op.workspace import OpWorkspace, to_run

KEPT = ".orchestrator_state.v2.json"
_LAST = 4  # what 2.0 says of stage 5 and later is a sentence without evidence: it is done again


def migrate(op_dir: Path | str, **caller: Any) -> dict[str, Any]:
    """Begin anew and complete again, in order, the stages up to 4 that the old state calls completed.

    Args:
        **caller: declared and person, as in `service.transition`.

    Returns:
        ok, action, current_stage, completed (the stages whose gates hold), stopped_by (why the next did not).

    Raises:
        ContractError: there is no state of version 2.0.
        InfraError: the old file cannot be kept.
    """
    ws = OpWorkspace.at(op_dir)
    claimed = _kept(ws)
    token = transition(ws.root, "init", from_version=OLD_VERSION, **caller).get("token")
    caller["token"] = token
    completed: list[int] = []
    stopped: str | None = None
    for stage in range(1, _LAST + 1):
        if claimed.get(str(stage)) != "completed":
            break
        try:
            if stage == _LAST:
                transition(ws.root, "freeze_plan", **caller)
            transition(ws.root, "complete_stage", stage=stage, **caller)
        except Refused as error:
            stopped = error.one_line()
            break
        completed.append(stage)
    return {
        "ok": True,
        "action": "migrate",
        "current_stage": len(completed) + 1,
        "completed": completed,
        "stopped_by": stopped,
        "kept": str(ws.root / KEPT),
        **({"token": token} if token else {}),
    }


def _kept(ws: OpWorkspace) -> dict[str, Any]:
    """Copy the old state beside itself and return what it says of each stage."""
    old = read_json(ws.state, remedy=to_run("state init --op-dir", ws.root))
    if old.get("schema_version") != OLD_VERSION:
        raise ContractError(
            f"is of version {str(old.get('schema_version'))[:20]!r}, not {OLD_VERSION}",
            file=ws.state,
            remedy="there is nothing to migrate",
        )
    table = old.get("stage_status")
    try:
        shutil.copyfile(ws.state, ws.root / KEPT)
    except OSError as error:
        raise InfraError(f"cannot be kept ({error.strerror})", file=ws.state, remedy="make room") from None
    return table if isinstance(table, dict) else {}
