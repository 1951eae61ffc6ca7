"""Counts for each case of a suite the mutants that it killed, now and in earlier measurements."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pypto_op.backends.build_cache import cache_root, digest_of
from pypto_op.mutation.hunt import Fate, Result
from pypto_op.workspace import OpWorkspace

_ROOM = "kills"


def table(cases: Sequence[Mapping[str, Any]], results: Iterable[Result]) -> list[dict[str, Any]]:
    """Return a row per case: `id`; `power`, its margin as the suite says it, None where it says none; `first`, mutants that
    it was the first to kill; `kills`, all that it kills among those that every case was asked about, None without such.

    Args:
        cases: of the suite, those that compare numbers.
    """
    killed = [result for result in results if result.fate is Fate.KILLED]
    asked = [result for result in killed if result.asked]
    rows = []
    for case in cases:
        name = str(case["id"])
        rows.append(
            {
                "id": name,
                "power": case.get("power"),
                "first": sum(result.case == name for result in killed),
                "kills": sum(name in result.killers for result in asked) if asked else None,
            }
        )
    return rows


def earlier(workspace: OpWorkspace) -> dict[str, tuple[int, int]]:
    """Return earlier measurements on this machine, for `Order.remember`; {} when there are none, or the file is damaged.

    It decides which case is tried first and nothing else, so nobody gains by writing into it.
    """
    try:
        kept = json.loads(_file(workspace).read_text(encoding="utf-8"))
        return {str(case): (int(kills), int(runs)) for case, (kills, runs) in kept.items() if 0 <= int(kills) <= int(runs)}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def keep(workspace: OpWorkspace, seen: Mapping[str, tuple[int, int]]) -> None:
    """Keep what a measurement saw for the next one; a full or read-only disk is no error."""
    file = _file(workspace)
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        descriptor, draft = tempfile.mkstemp(dir=file.parent)
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            json.dump(seen, stream)
        Path(draft).replace(file)


def _file(workspace: OpWorkspace) -> Path:
    return cache_root() / _ROOM / f"{digest_of(str(workspace.root.resolve()))[:24]}.json"
