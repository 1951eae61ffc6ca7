"""Flat buffers of zeros: what is divided by the length of a whole buffer shows nowhere else."""

from __future__ import annotations

from pypto_op.documents import constraints, golden_scan
from pypto_op.documents.knobs import SCALE, ZONE
from pypto_op.generators.cases import float_scalars, row_zeros
from pypto_op.generators.cases.case_maker import Knobs, Maker
from pypto_op.generators.cases.values import floating_of_many_rows, idle_scalars, widest
from pypto_op.vocabulary import Level

_MOST_TENSORS = 4
_NEXT_TO_0 = 2.0**-20
"""What one other tensor is multiplied by: beside a length of so little a guard of 1e-6 shows, and one of 1e-8 does not."""
_OUT_OF_THE_WAY = 1e8
"""A bound without an upper end, where quotients are as large as such a length makes them."""
_BELOW_1 = 0.3
"""A bound below the 1 that often stands for a quotient of zeros; no power of two."""


def add(maker: Maker) -> None:
    """Add cases in which one tensor is 0 throughout, and in which each other one is, where all tensors have one axis.

    Where some have more, only tensors of rows are 0 throughout, and only where the golden makes one number of a whole tensor.

    A row of zeros is tried elsewhere (`values.mixed`). Scalars that may be 0 are so where all tensors but one are: a weight
    decay keeps an update from 0. Beside a tensor of 0 another one is next to 0, and bounds are out of the way: a guard of a
    divisor shows. Where all tensors but one are 0, bounds lie below 1 in every second case.
    """
    sources = maker.sources
    if any(len(port.shape) > 1 for port in sources.tensors):
        _of_rows(maker)
        return
    names = [name for name in sources.floating[:_MOST_TENSORS] if row_zeros.may_be_zero(sources, name)]
    idle, dtype = idle_scalars(maker), widest(sources)
    free = _legal(maker, {**idle, **_bounds(maker, _OUT_OF_THE_WAY)})
    low = _legal(maker, {**idle, **_bounds(maker, _BELOW_1)})
    for place, name in enumerate(names):
        zero: Knobs = {ZONE: {name: "zero_row"}}
        before = names[place - 1]
        beside = {**free, SCALE: {before: _NEXT_TO_0}} if free and before != name else {}
        maker.add(Level.L3, f"empty_{name}", maker.ragged, dtype=dtype, knobs={**zero, **beside})
        scalars = low if place % 2 else idle  # a bound below 1 hides what a small scalar does
        others: Knobs = {ZONE: {other: "zero_row" for other in names if other != name}, **scalars}
        if len(names) > 2:
            maker.add(Level.L3, f"only_{name}", maker.ragged, dtype=dtype, knobs=others)


def _of_rows(maker: Maker) -> None:
    """Add a case for each tensor of rows that is 0 throughout: what is divided by the length of all rows shows nowhere else."""
    sources = maker.sources
    if golden_scan.reduces_whole(sources.ws.golden, sources.ws.golden_name()):
        for name in floating_of_many_rows(sources):
            if row_zeros.may_be_zero(sources, name) and name not in sources.spec.fixed_inputs:
                maker.add(Level.L3, f"empty_{name}", maker.ragged, dtype=widest(sources), knobs={ZONE: {name: "zeros"}})


def _bounds(maker: Maker, value: float) -> Knobs:
    """Return another value of each scalar above 1 by default that SPEC.md lets grow without end, as it does a greatest ratio."""
    told = float_scalars.scalars(maker).items()
    return {name: value for name, one in told if one.default > 1.0 and one.far_above() and one.kept.holds(value)}


def _legal(maker: Maker, scalars: Knobs) -> Knobs:
    """Return scalars that SPEC.md allows together, or those of them that may be 0."""
    said = maker.sources.spec.shape_constraints
    return scalars if constraints.satisfied(said, {**maker.ragged, **scalars}) else idle_scalars(maker)
