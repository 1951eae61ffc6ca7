"""Other scalars, and counts of 1, beside a switch: the branch of another mode may know defaults by heart, or drown."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pypto_op.documents import constraints
from pypto_op.documents.knobs import RANGE
from pypto_op.generators.cases import float_scalars, one_number, whole_numbers
from pypto_op.generators.cases.values import widest
from pypto_op.generators.operator.sources import Sources
from pypto_op.vocabulary import Level

if TYPE_CHECKING:
    from pypto_op.generators.cases.case_maker import Maker

_FEW = 3
"""Values that a whole number has at most that names a mode; with more it counts something."""
_MOST_PAIRS = 6
"""Pairs of flags that are tried at once; `whole_numbers.together` and `beside` put whole numbers side by side."""


def add(maker: Maker) -> None:
    """Add each other value of a switch beside other values of all float scalars, and beside their ends.

    An eps that is added with the wrong sign under `swap` shows beside a large eps alone. More cases have whole numbers at their
    ends, counts that are all 1 (whether a variance is divided by the samples or by one less, a million of them hide), and two
    flags at once.
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
        for word, numbers in whole_numbers.beside(maker, {switch: value}):
            knobs = {switch: value, **numbers}
            maker.add(Level.L3, f"{switch}_{value}_{word}".lower(), maker.ragged, dtype=widest(maker.sources), knobs=knobs)
        ones = dict.fromkeys(one_number.counts(maker.sources), [1, 2])
        if ones and constraints.satisfied(said, {**maker.sources.whole_numbers, **maker.ragged, switch: value}):
            knobs = {switch: value, RANGE: ones}
            maker.add(Level.L3, f"{switch}_{value}_of_ones".lower(), maker.ragged, dtype=widest(maker.sources), knobs=knobs)
    for both in itertools.islice(itertools.combinations(_flags(maker.sources), 2), _MOST_PAIRS):
        name = "_".join(f"{flag}_{value}" for flag, value in both).lower()
        maker.add(Level.L3, name, maker.ragged, dtype=widest(maker.sources), knobs=dict(both))


def _positions(maker: Maker) -> Iterator[tuple[str, int]]:
    """Yield the switches among the scalars, flags and whole numbers of few values, each with its values but the default."""
    sources = maker.sources
    yield from _flags(sources)
    for name in whole_numbers.free(maker):
        known = {**sources.whole_numbers, **maker.ragged}
        least, greatest = constraints.whole_ends(sources.spec.shape_constraints, name, known) or (None, None)
        if least is not None and greatest is not None and greatest - least < _FEW:
            yield from ((name, value) for value in range(least, greatest + 1) if value != sources.scalars.get(name))


def _flags(sources: Sources) -> list[tuple[str, bool]]:
    return [(name, not default) for name, default in sources.scalars.items() if isinstance(default, bool)]
