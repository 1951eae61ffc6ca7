"""R1 to R6 (construct seed) where they need more than module_interfaces.yaml: the contract is held to DESIGN.md 0.3 and 0.5.

A decision in DESIGN.md 0.3 that carries an override reason (somebody named N) makes thickness and backbone advice; what a
boundary is called, and which words name a heavy operation, never is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pypto_op.documents import design as design_document
from pypto_op.documents.design import ModuleRow, out_of_band
from pypto_op.documents.ports import Interfaces
from pypto_op.documents.schema import Finding
from pypto_op.errors import ContractError
from pypto_op.vocabulary import HEAVY_OPS

_SAME_UNITS = 1e-6


def findings(data: Mapping[str, Any], interfaces: Interfaces, design: Path) -> Iterator[Finding]:
    """Yield where a contract of several modules breaks a rule or differs from DESIGN.md.

    Args:
        data: the contract as written; it satisfies schema and wiring rules.
        design: DESIGN.md; what it says does not count where it is missing or broken, which its own check tells.
    """
    table: tuple[ModuleRow, ...] = ()
    free = False
    if design.is_file():
        try:
            decided = design_document.load(design)
            table, free = design_document.module_rows(design), bool(decided.override)
        except ContractError:
            pass
        else:
            if decided.module_count != interfaces.total_modules:
                words = f"are {interfaces.total_modules}; DESIGN.md 0.3 decides on {decided.module_count}: write that many"
                yield Finding("modules", words)
                return
    if interfaces.total_modules == 1:
        return
    rows: tuple[ModuleRow | None, ...] = table or (None,) * interfaces.total_modules
    for i, (item, row) in enumerate(zip(data["modules"], rows, strict=False)):
        if not free:
            yield from _thick_enough(item, i)
        if row is not None:
            yield from _as_designed(item, i, row)
            yield from _same_boundary(interfaces, i, row)


def _thick_enough(item: Mapping[str, Any], i: int) -> Iterator[Finding]:
    """R2 and R6: a heavy operation, and about one complexity unit."""
    if not item.get("heavy_ops"):
        allowed = ", ".join(HEAVY_OPS)
        yield Finding(f"modules[{i}].heavy_ops", f"{item['name']} names no heavy op: name one or more of {allowed}, or merge it")
    words = out_of_band(item["name"], item["cu"]) if "cu" in item else ""
    if words:
        yield Finding(f"modules[{i}].cu", words)


def _as_designed(item: Mapping[str, Any], i: int, row: ModuleRow) -> Iterator[Finding]:
    """R1: units come from DESIGN.md."""
    if "cu" in item and row.units is not None and abs(item["cu"] - row.units) > _SAME_UNITS:
        yield Finding(f"modules[{i}].cu", f"{item['name']} has {item['cu']:g} units; DESIGN.md 0.5 gives M{i + 1} {row.units:g}")


def _same_boundary(interfaces: Interfaces, i: int, row: ModuleRow) -> Iterator[Finding]:
    """R1: what crosses a boundary is called as in DESIGN.md 0.5, and all that later modules read is named there."""
    module = interfaces.modules[i]
    own = {port.name for port in module.outputs}
    known = own | {port.name for port in interfaces.live_out(i + 1)}
    read = {port.name for later in interfaces.modules[i + 1 :] for port in later.inputs if port.module == module.id}
    designed = ", ".join(row.boundary) or "nothing"
    for name in sorted(read - set(row.boundary)):
        yield Finding(
            f"modules[{i}].outputs", f"{module.name} hands on {name}; DESIGN.md 0.5 gives M{i + 1} the boundary {designed}"
        )
    for name in row.boundary:
        if name not in known:
            made = ", ".join(sorted(known))
            yield Finding(
                f"modules[{i}].outputs", f"DESIGN.md 0.5 gives M{i + 1} the boundary {name}; {module.name} makes {made}"
            )
