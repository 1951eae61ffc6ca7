"""Every benchmark of an operator, a line each: how its speed went, kernel by kernel."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pypto_op.workspace import OpWorkspace

_FOLDER, _FILE = "benchmarks", "history.jsonl"


def note(ws: OpWorkspace, result: Mapping[str, Any]) -> None:
    """Add a result to the operator's history."""
    folder = ws.debug_dir / _FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    line = {
        "created": result["created"],
        "impl": result["hashes"]["impl"],
        "versions": result["versions"],
        "rows": [
            {"label": row["label"], "mode": row["mode"], "median": row["median"], "spread": row["spread"]}
            for row in result["per_shape_results"]
        ],
    }
    with (folder / _FILE).open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(line, sort_keys=True) + "\n")


def read(ws: OpWorkspace) -> list[dict[str, Any]]:
    """Return the history, oldest first; a damaged line is left out."""
    try:
        lines = (ws.debug_dir / _FOLDER / _FILE).read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        try:
            row = json.loads(line)
            found.append({"created": str(row["created"]), "impl": str(row["impl"]), "rows": list(row["rows"])})
        except (ValueError, KeyError, TypeError):
            continue
    return found
