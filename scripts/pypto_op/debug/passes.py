"""`pypto-op debug pass-error-locator`: what each pass did to the graphs, and which one is the suspect."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from pypto_op.debug.run_files import Graph, PassDump, graphs, output_folder, pass_dumps
from pypto_op.documents import schema
from pypto_op.errors import InfraError, PyptoOpError

_ADMINISTRATION = frozenset({"VIEW", "ASSEMBLE", "COPY_IN", "COPY_OUT", "RESHAPE", "EXPAND", "NOP", "REGISTER_COPY"})
"""Operations that passes may add and remove at will."""


def locate(path: Path) -> dict[str, Any]:
    """Read a run's pass dumps (schemas/debug_pass_error_locator.schema.json).

    A pass is a suspect when it has a graph from before and none from after it (it failed), leaves a circle of dependencies, or
    removes the last operation of a line that computes.

    Raises:
        ContractError: no such folder.
        InfraError: the run left no dump of a pass.
    """
    folder = output_folder(path)
    dumps = pass_dumps(folder)
    if not dumps:
        raise InfraError(
            "the run dumped no graph of a pass", file=folder, remedy="make them by `pypto-op debug dump OP_DIR --case ID`"
        )
    changes, suspects, unread = [], [], []
    for before, after in _pairs(dumps):
        try:
            change, found = _change(before, after)
        except PyptoOpError as error:
            unread.append(error.one_line())
            continue
        suspects += found
        if change is not None:
            changes.append(change)
    result = {
        "schema_version": 1,
        "folder": str(folder),
        "passes": len({dump.name for dump in dumps}),
        "last_pass": dumps[-1].name,
        "changes": changes,
        "suspects": suspects,
        "unread": unread,
    }
    schema.check(result, "debug_pass_error_locator")
    return result


def _pairs(dumps: list[PassDump]) -> list[tuple[PassDump, PassDump | None]]:
    after = {(one.name, one.graph): one for one in dumps if one.when == "After"}
    return [(one, after.get((one.name, one.graph))) for one in dumps if one.when == "Before"]


def _change(before: PassDump, after: PassDump | None) -> tuple[dict[str, Any] | None, list[dict[str, Any]]]:
    place = {"pass": before.name, "number": before.number, "graph": before.graph}
    first = graphs(before.path)[0]
    if after is None:
        folder = before.path.parent
        known = {path.name.removeprefix("Before_") for path in folder.glob("Before_*.json")}
        renamed = [path for path in folder.glob("After_*.json") if path.name.removeprefix("After_") not in known]
        if renamed:  # a pass that gives the graph another name
            return None, []
        lines = sorted({one.line for one in first.operations if one.line})
        return None, [{**place, "why": "the pass began and left no graph: it failed here", "lines": lines[:8]}]
    second = graphs(after.path)[0]
    suspects = []
    if circle := second.cycle():
        lines = sorted({one.line for one in second.operations if one.magic in circle and one.line})
        words = f"a circle of dependencies after it: operations {', '.join(map(str, circle[:8]))}"
        suspects.append({**place, "why": words, "lines": lines})
    lost = _lost(first, second)
    if lost:
        words = f"nothing is left of {', '.join(sorted({opcode for _, opcode in lost}))}"
        suspects.append({**place, "why": words, "lines": sorted({line for line, _ in lost})})
    counts = Counter(one.opcode for one in second.operations)
    counts.subtract(one.opcode for one in first.operations)
    changed = {opcode: count for opcode, count in sorted(counts.items()) if count}
    return ({**place, "operations": changed} if changed else None), suspects


def _lost(first: Graph, second: Graph) -> list[tuple[int, str]]:
    """Return (line, opcode) of computing operations whose line computes nothing at all any more."""
    left = {one.line for one in second.operations if one.opcode not in _ADMINISTRATION}
    computing = {(one.line, one.opcode) for one in first.operations if one.line and one.opcode not in _ADMINISTRATION}
    return sorted((line, opcode) for line, opcode in computing if line is not None and line not in left)
