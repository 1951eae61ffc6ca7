"""The cases of a first eval/adversarial_suite.json (verifier seed, B.2), from what is known before any kernel exists.

| level | what | cases |
|---|---|---|
| L1 | it runs, and the structure is right | the base shape in each dtype, the first P0 shape |
| L2 | ordinary numbers | the base shape and each P0 shape, each dtype, a second seed |
| L3 | edges | each dynamic axis at 2T+-1, T+1, T, T-1 for each step T, 1; flags; a zone whose lost column shows |
| L4 | long axes, batches | each dynamic axis at several tiles and a rest, all at several, shares near 0 and 1, long windows |
| L5 | values that hurt | primes; zones of three tiles and a rest, 8-bit codes near their ends, sums that cancel |
"""

from __future__ import annotations

from collections.abc import Iterable

from pypto_op.generators.cases import (
    codes,
    empty_buffers,
    far_values,
    lagging,
    leaning,
    lowest,
    meeting,
    one_number,
    sizes,
    switches,
    thresholds,
    values,
    whole_numbers,
)
from pypto_op.generators.cases.case_maker import SEEDS, Case, Maker
from pypto_op.generators.cases.near_ends import near_ends
from pypto_op.generators.operator.sources import Sources
from pypto_op.vocabulary import Level


def cases(sources: Sources, dropped: dict[str, str] | None = None) -> list[Case]:
    """Return the cases, two or more per level, in order of level.

    Args:
        sources: what is known of the operator.
        dropped: told which sizes SPEC.md allows nothing near, and why.

    Raises:
        ContractError: a P0 shape does not determine the symbols of the interfaces, or contradicts them.
    """
    maker = filled(sources)
    if dropped is not None:
        dropped |= maker.dropped
    return in_order(maker)


def filled(sources: Sources) -> Maker:
    """Return the maker of all cases; see `cases`."""
    maker = Maker(sources)
    whole = (whole_numbers.past, whole_numbers.along, whole_numbers.far, one_number.long)
    for fill in (_structure, _ordinary, _edges, sizes.long, *whole, near_ends, _hurting, one_number.beyond_32_bits):
        fill(maker)
    maker.complete()
    return maker


def in_order(maker: Maker) -> list[Case]:
    """Return a maker's cases in order of level."""
    return by_level(maker.cases)


def by_level(made: Iterable[Case]) -> list[Case]:
    """Return cases in order of level; within one, in their own."""
    order = [str(level) for level in Level]
    return sorted(made, key=lambda case: order.index(case["level"]))


def _structure(maker: Maker) -> None:
    for dtype in maker.sources.spec.supported_dtypes:
        maker.add(Level.L1, "runs", maker.base, dtype=dtype)
    for number, shape in enumerate(maker.p0[:1]):
        maker.add(Level.L1, f"p0_{number}", shape)


def _ordinary(maker: Maker) -> None:
    for dtype in maker.sources.spec.supported_dtypes:
        maker.add(Level.L2, "base", maker.base, dtype=dtype)
    for number, shape in enumerate(maker.p0):
        for dtype in maker.sources.spec.supported_dtypes:
            maker.add(Level.L2, f"p0_{number}", shape, dtype=dtype)
    maker.add(Level.L2, "base_again", maker.base, seed=SEEDS[1])


def _edges(maker: Maker) -> None:
    sizes.edges(maker)
    values.scalars(maker)
    thresholds.add(maker)
    switches.add(maker)
    values.set_apart(maker)
    one_number.add(maker)
    values.zones(maker, Level.L3)
    values.mixed(maker)
    empty_buffers.add(maker)
    values.masked(maker)


def _hurting(maker: Maker) -> None:
    sizes.primes(maker)
    values.zones(maker, Level.L5)
    values.beyond_half(maker)
    far_values.add(maker)
    codes.add(maker)
    lowest.add(maker)
    values.specials(maker)
    values.alike(maker)
    meeting.add(maker)
    leaning.add(maker)
    lagging.add(maker)
    values.cancellation(maker)
