"""Other float scalars beside a switch: the branch of another mode may know their defaults by heart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pypto_op.documents import constraints
from pypto_op.generators.cases import float_scalars, whole_numbers
from pypto_op.generators.cases.values import widest
from pypto_op.vocabulary import Level

if TYPE_CHECKING:
    from pypto_op.generators.cases.case_maker import Maker

_FEW = 3
"""Values that a whole number has at most that names a mode; with more it counts something."""


def add(maker: Maker) -> None:
    """Add each other value of a switch beside other values of all float scalars, and beside their ends.

    An eps that is added with the wrong sign under `swap` shows beside a large eps alone.
    """
    said, usual = maker.sources.spec.shape_constraints, float_scalars.scalars(maker)
    others = {name: values[0] for name, scalar in usual.items() if (values := scalar.others())}
    ends = {**others, **{name: found[-1] for name, scalar in usual.items() if (found := scalar.ends())}}
    for switch, value in _positions(maker):
        for word, floats in {"others": others, "ends": ends}.items():
            fresh = floats and (word == "others" or ends != others)
            knobs: dict[str, Any] = {**floats, switch: value}
            known: dict[str, Any] = {**maker.sources.whole_numbers, **maker.ragged, **knobs}
            if fresh and constraints.satisfied(said, known):
                maker.add(Level.L3, f"{switch}_{value}_{word}".lower(), maker.ragged, dtype=widest(maker.sources), knobs=knobs)


def _positions(maker: Maker) -> Iterator[tuple[str, int]]:
    """Yield the switches among the scalars, flags and whole numbers of few values, each with its values but the default."""
    sources = maker.sources
    yield from ((name, not default) for name, default in sources.scalars.items() if isinstance(default, bool))
    for name in whole_numbers.free(maker):
        known = {**sources.whole_numbers, **maker.ragged}
        least, greatest = constraints.whole_ends(sources.spec.shape_constraints, name, known) or (None, None)
        if least is not None and greatest is not None and greatest - least < _FEW:
            yield from ((name, value) for value in range(least, greatest + 1) if value != sources.scalars.get(name))
