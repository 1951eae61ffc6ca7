"""A row of zeros, and 0 for it in each tensor of one number per row: a state of an optimizer before its first step.

What keeps 0 / 0 from NaN shows there alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pypto_op.documents import ranges
from pypto_op.documents.knobs import ZONE
from pypto_op.documents.rows import Rows
from pypto_op.generators.operator.sources import Sources

_FIRST = "first_zero"


def zone(sources: Sources, name: str) -> dict[str, str]:
    """Return the zones of a case in which a tensor has a row of zeros."""
    axes = next(tuple(port.shape) for port in sources.tensors if port.name == name)
    of_rows = [port.name for port in sources.tensors if tuple(port.shape) == axes[:-1] and port.name in sources.floating]
    return {name: "zero_row", **{other: _FIRST for other in of_rows if may_be_zero(sources, other)}}


def may_be_zero(sources: Sources, name: str) -> bool:
    """Whether SPEC.md's range, and what it says of rows, leave room for zeros in a tensor."""
    return ranges.of(sources.spec.shape_constraints, name).holds(0.0) and sources.spec.rows.get(name, Rows()).may_be_zero


def alone(case: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield such a case without the zeros beside the row: a golden may divide by them."""
    zones = case.get(ZONE)
    if isinstance(zones, Mapping) and _FIRST in zones.values():
        kept = {name: word for name, word in zones.items() if word != _FIRST}
        yield {**case, "id": f"{case['id']}_alone", ZONE: kept}
