"""Whether the values of a call are those that SPEC.md allows: on others a right kernel may answer anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pypto_op.documents import ranges
from pypto_op.documents.rows import Rows


def misfit(said: Sequence[str], rows: Mapping[str, Rows], case: Mapping[str, Any], made: Sequence[tuple[str, Any]]) -> str:
    """Return which input leaves SPEC.md's ranges and how, in words that hold no value of it; "" for none. NaN stands for itself.

    Args:
        said: `Spec.shape_constraints`, which hold `input_ranges` too.
        rows: `Spec.rows`.
        case: of the suite, whose sizes an end of a range may name.
        made: the inputs by name, in order.
    """
    sizes = {symbol: size for symbol, size in case["shape"].items() if isinstance(size, int)}
    for name, value in made:
        kept = ranges.of(said, name, sizes)
        if kept.left_by(value):
            return f"{name} has values outside its range in SPEC.md, {kept}"
        broken = rows[name].left_by(value) if name in rows else ""
        if broken:
            return f"{name} has {broken}, as SPEC.md's input_ranges say"
    return ""
