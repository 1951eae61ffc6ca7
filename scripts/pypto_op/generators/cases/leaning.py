"""Rows of two tensors that stand at every angle to one another, where a golden turns at a float scalar: a margin of cosines.

Rows that are drawn one by one are nearly across one another, and rows that are alike have a cosine of 1. A kernel that held a
margin of 0.9 to 0.5 was right on both.
"""

from __future__ import annotations

from pypto_op.documents import golden_scan, ranges
from pypto_op.documents.knobs import LEANING
from pypto_op.documents.rows import Rows
from pypto_op.generators.cases import float_scalars
from pypto_op.generators.cases.case_maker import Maker
from pypto_op.generators.cases.values import widest
from pypto_op.generators.operator.sources import Sources
from pypto_op.vocabulary import Level

_MOST_PAIRS = 2


def add(maker: Maker) -> None:
    """Add a case of such rows for each pair of tensors, and one beside each end of the range of what the golden turns at."""
    found = pairs(maker.sources)[:_MOST_PAIRS]
    names = _turning(maker.sources) if found else ()
    ends = [{name: end} for name, scalar in float_scalars.scalars(maker).items() if name in names for end in scalar.ends()]
    for name, other in found:
        for scalars in ({}, *ends):
            knobs = {LEANING: {name: other}, **scalars}
            maker.add(Level.L5, f"leaning_{name}_{other}", maker.ragged, dtype=widest(maker.sources), knobs=knobs)


def pairs(sources: Sources) -> list[tuple[str, str]]:
    """Return the pairs of tensors of which the first may lean on the second; none where the golden turns at no float scalar."""
    free = [port.name for port in sources.tensors if len(port.shape) > 1 and _may_lean(sources, port.name)]
    found = [(name, other) for name, other in sources.alike if name in free and other in free]
    return found if found and _turning(sources) else []


def _may_lean(sources: Sources, name: str) -> bool:
    """Whether a floating tensor has no range but one of the lengths of its rows, which leaning keeps."""
    rows = sources.spec.rows.get(name, Rows())
    plain = rows == Rows() or (rows.measure == "length" and not rows.order and not rows.one_of)
    kept = ranges.of(sources.spec.shape_constraints, name, sources.p0_sizes()[0])
    return name in sources.floating and plain and kept == ranges.Range()


def _turning(sources: Sources) -> list[str]:
    """Return the float scalars at which the golden turns."""
    at = golden_scan.turning_parameters(sources.ws.golden, sources.ws.golden_name())
    return [name for name, default in sources.scalars.items() if isinstance(default, float) and name in at]
