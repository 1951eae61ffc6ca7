"""A place of a kernel as `precision-compare` tells it: line, kind, operation, turn, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pypto_op.debug.divergence import Divergence
from pypto_op.diagnose.kernel_loops import KernelLoops


def row_of(found: Divergence, kind: str, text: KernelLoops, *, sure: bool = True) -> dict[str, Any]:
    """Return a place that was found, as a row; the line is that of a helper's call where the call is at fault."""
    step = found.step
    line = step.line
    if line is None and kind == "misplaced" and step.opcode == "ASSEMBLE":
        writes = text.writes_of_graph(step.function, step.symbol)
        line = writes[0] if len(writes) == 1 else None
    row = {**place(line, kind, step.opcode, step.turn, found.why), "sure": sure}
    callers = text.callers(step.line, step.function) if step.line else []
    call = found.call_of(len(callers))
    if call is None and kind != "computed" and step.line and step.opcode == "VIEW" and text.placed_by_caller(step.line):
        call = found.same.index(step.number) % max(len(callers), 1) if step.number in found.same else 0
    if callers and call is not None:  # the helper does what it is told; this call of it hands over something else
        row["line"], callers = callers[call], callers[:1]
    return {**row, "operation": step.number, "shape": list(step.valid), "called_from": list(dict.fromkeys(callers))[:4]}


def place(line: int | None, kind: str, opcode: str, turn: str, why: str) -> dict[str, Any]:
    """Return a row of a place that is no single operation's."""
    row = {"line": line, "kind": kind, "opcode": opcode, "turn": turn, "why": why, "sure": True}
    return {**row, "operation": 0, "shape": [], "called_from": []}


def distinct(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows without those that tell a line, kind and operation again; rows without a line go last."""
    kept: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        kept.setdefault((row["line"], row["kind"], row["opcode"]), row)
    return sorted(kept.values(), key=lambda row: row["line"] is None)
