"""Flat buffers of zeros: what is divided by the length of a whole buffer shows nowhere else."""

from __future__ import annotations

from pypto_op.documents import ranges
from pypto_op.documents.knobs import ZONE
from pypto_op.documents.rows import Rows
from pypto_op.generators.cases.case_maker import Knobs, Maker
from pypto_op.generators.cases.values import idle_scalars, widest
from pypto_op.generators.operator.sources import Sources
from pypto_op.vocabulary import Level

_MOST_TENSORS = 4


def add(maker: Maker) -> None:
    """Add cases in which one tensor is 0 throughout, and in which each other one is, where all tensors have one axis.

    A row of zeros is tried elsewhere (`values.mixed`). Scalars that may be 0 are so where all tensors but one are: a weight
    decay keeps an update from 0.
    """
    sources = maker.sources
    if any(len(port.shape) > 1 for port in sources.tensors):
        return
    names = [name for name in sources.floating[:_MOST_TENSORS] if _may_be_zero(sources, name)]
    idle, dtype = idle_scalars(maker), widest(sources)
    for name in names:
        maker.add(Level.L3, f"empty_{name}", maker.ragged, dtype=dtype, knobs={ZONE: {name: "zero_row"}})
        others: Knobs = {ZONE: {other: "zero_row" for other in names if other != name}, **idle}
        if len(names) > 2:
            maker.add(Level.L3, f"only_{name}", maker.ragged, dtype=dtype, knobs=others)


def _may_be_zero(sources: Sources, name: str) -> bool:
    """Whether SPEC.md's range, and what it says of rows, leave room for a tensor of zeros."""
    return ranges.of(sources.spec.shape_constraints, name).holds(0.0) and sources.spec.rows.get(name, Rows()).may_be_zero
