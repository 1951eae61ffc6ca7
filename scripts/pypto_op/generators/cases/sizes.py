"""Sizes that break kernels: edges of tiles, several tiles and a rest, batches, primes.

What SPEC.md's constraints forbid is rounded to the nearest size that they allow (`documents.legal_sizes`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

from pypto_op.documents import axes, constraints
from pypto_op.documents.knobs import RANGE, ZONE
from pypto_op.documents.rows import Rows
from pypto_op.generators.cases.case_maker import MOST_ELEMENTS, Maker
from pypto_op.generators.cases.walks import REST, SMALL, TILES, walks
from pypto_op.generators.operator.sources import Sizes, Sources
from pypto_op.vocabulary import Level

_MANY_TILES = (10, 7, 5, 4)
_TILES_OF_TWO = (66, 34, 18)
"""Steps of an axis that is cut into two parts or more, so that one has more than 32 of them: room for so many is usual."""
_COUNTS = (131, 67, 33, 17, 7)
"""Batches, segments and the like, the first that memory allows: a kernel may have room for 128 of them, 64, 32, 16 or 8."""
_FEW_COUNTS = _COUNTS[2:]
"""Those of an operator in which a walk lies inside a walk: each batch costs the square."""
_CROWDED = 7
"""So many parts lie between two neighbours: the first and the last are empty then, all but always."""
_HEADS = (17, 33, 65)
"""Likewise of heads, the first above those of the P0 shapes."""
_PARTS = (5, 3, 2)
"""Of heads that others share: three to each."""
_POOLS = (4111, 1031, 515, 259, 131, 67, 37)
"""Sizes of what indices point into, the first that memory allows: an index may be cut to 8 bits, or to 7, or pass through
float16, which holds whole numbers up to 2048; half of the indices lie above that."""
_MOST_IN_A_POOL = 9 << 20
"""Elements of the largest tensor there: a kernel reads of a pool what the indices name. 4111 pages of 32 rows of one head."""
_LEAST_STEP = 8
_OTHER_STEPS = 3
"""Further steps that a design names, beside those of the axis itself, whose edges are tried."""


def edges(maker: Maker) -> None:
    """Add each dynamic axis at the edges of its steps, and each fixed one at a size that fills none, and at both
    ends of what SPEC.md says of it.

    The largest come first: a call with fewer elements than the one before shows what a wrapper keeps.
    """
    for axis in maker.dynamic:
        for word, size in _edge_sizes(maker, axis):
            sizes = maker.fitted({axis: size})
            maker.add(Level.L3, f"{axis}_{word}", sizes, knobs=_that_counts(maker.sources, sizes))
    _other_edges(maker)
    for axis in maker.fixed:
        _ragged(maker, axis)
    for axis, most in maker.counted.items():
        wanted = next((count for count in _HEADS if count > most), most + 1)
        _first(maker, Level.L3, f"{axis}_more", [{axis: wanted}, {axis: most + 1}])
    for axis, by in constraints.shares(maker.sources.spec.shape_constraints):
        _shared(maker, axis, by)
    least = dict.fromkeys((*maker.fixed, *maker.varied), 1)
    if least:  # less than a tile, one head: a kernel may need two
        maker.add(Level.L3, "build_least", maker.fitted(least))
    for axis, word, size in maker.named_ends:
        _end(maker, axis, word, size)


def long(maker: Maker) -> None:
    """Add long axes, many batches, and both together."""
    batches = [axis for axis in maker.dynamic if axis not in (*maker.long, *maker.sources.pools)]
    for axis in maker.sources.pools:
        narrow, several = dict.fromkeys((*maker.fixed, *maker.varied), 1), dict.fromkeys(batches, 7)
        wanted = [{**several, **beside, axis: size} for size in _POOLS for beside in ({}, narrow)]
        _first(maker, Level.L4, f"{axis}_large", wanted, most=_MOST_IN_A_POOL)
    for axis in maker.sources.indexed if not maker.sources.steps.nested else ():
        few = dict.fromkeys((other for other in maker.dynamic if other != axis), SMALL)
        narrow = dict.fromkeys((*maker.fixed, *maker.varied), 1)
        _first(maker, Level.L4, f"{axis}_large", [{**few, **beside, axis: size} for size in _POOLS for beside in ({}, narrow)])
    for name, axis, parts in _cut(maker.sources):
        _crowded(maker, name, axis, parts)
        few = dict.fromkeys(maker.fixed, 1) | dict.fromkeys(parts, 2)
        walked = [{**few, axis: tiles * maker.sources.steps_along(axis)[0] + 1} for tiles in _TILES_OF_TWO]
        _first(maker, Level.L4, f"{axis}_of_long_parts", walked)
    for axis in maker.long:
        step = maker.sources.steps_along(axis)[-1]
        steps = (step, *maker.sources.steps_along(axis))
        _first(maker, Level.L4, f"{axis}_long", [{axis: TILES * each + REST} for each in steps])
        _first(maker, Level.L4, f"{axis}_six_{step}_minus_1", [{axis: 6 * step - 1}, {axis: 2 * step + step // 2}])
        counts = _MANY_TILES[-2:] if maker.sources.steps.nested else _MANY_TILES  # a walk inside a walk costs the square
        steps = (step, min(step, maker.sources.tiles[0]))
        _first(maker, Level.L4, f"{axis}_many_tiles", [{axis: tiles * each + 1} for each in steps for tiles in counts])
    for axis in batches:
        several_of = _FEW_COUNTS if maker.sources.steps.nested else _COUNTS
        _first(maker, Level.L4, f"{axis}_many", [{axis: count} for count in several_of])
        if maker.long:
            _first(maker, Level.L4, f"{axis}_many_ragged", [{**walked, axis: 7} for walked in walks(maker)])
    if len(maker.dynamic) > 1:
        threes = dict.fromkeys(batches, 3)
        _first(maker, Level.L4, "all_axes", [{**walked, **threes} for walked in walks(maker)])


def _crowded(maker: Maker, name: str, axis: str, parts: Sequence[str]) -> None:
    """Add parts of one row or none in the middle of an axis: an empty one at the end may write what lies behind it.

    Of borders that are drawn evenly the last two are hardly ever equal, and what others write there hides it.
    """
    sizes = maker.fitted(dict.fromkeys(parts, _CROWDED))
    middle = sizes[axis] // 2
    maker.add(
        Level.L3,
        f"{name}_crowded",
        sizes,
        dtype=maker.sources.spec.supported_dtypes[0],
        knobs={RANGE: {name: [middle, middle + 2]}},
    )


def _cut(sources: Sources) -> Iterator[tuple[str, str, list[str]]]:
    """Yield whole numbers in order that cut a long axis into parts, with that axis and the axes of these numbers.

    None where a part is walked for each step of it: the square of so many steps takes too long.
    """
    for port in sources.tensors:
        ends = " ".join(sources.ranges.get(port.name, ())) if sources.spec.rows.get(port.name, Rows()).order else ""
        for axis in sources.long if not sources.steps.nested else ():
            if re.search(rf"\b{axis}\b", ends):
                yield (
                    port.name,
                    axis,
                    [symbol for symbol in sources.spec.dynamic_axes if symbol in axes.symbols_of(port) - {axis}],
                )


def primes(maker: Maker) -> None:
    """Add all axes at primes, in each dtype: above three steps of each, between one and two, and below one."""
    dtypes = maker.sources.spec.supported_dtypes
    for turn in range(max(3, len(dtypes))):
        pools = dict.fromkeys(maker.sources.pools, (23, 31, 17)[turn % 3])
        wanted = {axis: (5, 3, 7)[turn % 3] for axis in maker.dynamic if axis not in maker.long} | pools
        for number, axis in enumerate(maker.long):
            step = maker.sources.steps_along(axis)[0]
            wanted[axis] = _prime((TILES * step, step + step // 4, step // 2)[turn % 3] + 2 * number)
        options = [wanted, {**wanted, **{axis: _prime(2 * SMALL + 2 * n) for n, axis in enumerate(maker.long)}}]
        for sizes in options:
            if maker.add(Level.L5, "primes", maker.fitted(sizes), dtype=dtypes[turn % len(dtypes)]):
                break


def _first(maker: Maker, level: Level, word: str, options: Sequence[Sizes], most: int = MOST_ELEMENTS) -> None:
    """Add the first of several sizes that is small enough, and legal: the base says nothing more."""
    for wanted in options:
        sizes = maker.fitted(wanted, up=True)
        if sizes != maker.base and maker.add(level, word, sizes, most=most):
            return


def _shared(maker: Maker, axis: str, by: str) -> None:
    """Add an axis at three times another, of which it has so many to each: a kernel may find its own by a shift, or modulo.

    Powers of two, and few parts, hide both.
    """
    if axis in maker.base and by in maker.base:
        _first(maker, Level.L3, f"{axis}_three_per_{by}", [{by: parts, axis: 3 * parts} for parts in _PARTS])


def _edge_sizes(maker: Maker, axis: str) -> Iterator[tuple[str, int]]:
    if axis not in maker.long:
        yield from (("three", 3), ("one", 1))
        return
    for step in reversed(maker.sources.steps_along(axis)):
        yield from ((f"two_{step}_plus_1", 2 * step + 1), (f"two_{step}_minus_1", 2 * step - 1))
        yield from ((f"{step}_plus_1", step + 1), (f"{step}", step), (f"{step}_minus_1", step - 1))
    yield "one", 1


def _that_counts(sources: Sources, sizes: Sizes) -> dict[str, dict[str, str]]:
    """Return the knob by which an only flag counts: one token of padding shows nothing, and its case would be left out."""
    single = [port.name for port in sources.tensors if port.name in sources.masks and math.prod(port.sizes(sizes)) == 1]
    return {ZONE: dict.fromkeys(single, "all")} if single else {}


def _other_edges(maker: Maker) -> None:
    """Add the edges of other steps that the design names, all long axes at once: each is one number among several."""
    others = {axis: _others(maker.sources, axis) for axis in maker.long if not maker.sources.is_list(axis)}
    for turn in range(max(map(len, others.values()), default=0)):
        for word, beside in (("plus_1", 1), ("whole", 0), ("minus_1", -1)):
            wanted = {axis: steps[turn] + beside for axis, steps in others.items() if turn < len(steps)}
            name = "_".join(f"{axis}_{size - beside}" for axis, size in wanted.items())
            if not maker.has_met(wanted):
                maker.add(Level.L3, f"{name}_{word}"[:96], maker.fitted(wanted))


def _others(sources: Sources, axis: str) -> list[int]:
    """Return the named steps that are none of an axis's own, the nearest to its own first."""
    own = sources.steps_along(axis)
    named = [step for step in sources.steps.named if step not in own and step >= _LEAST_STEP]
    near = sorted(named, key=lambda step: abs(math.log2(step / own[0])))
    return sorted(near[:_OTHER_STEPS], reverse=True)


def _prime(least: int) -> int:
    """Return the smallest prime that is no less."""
    number = max(least, 2)
    while any(number % divisor == 0 for divisor in range(2, math.isqrt(number) + 1)):
        number += 1
    return number


def _ragged(maker: Maker, axis: str) -> None:
    """Add one size of a fixed axis that fills no tile, of the largest tile for which there is a legal one."""
    for tile in sorted({*maker.sources.tiles, *maker.sources.steps.of.get(axis, ())}, reverse=True):
        for size in range(tile + 1, 2 * tile):
            sizes = {**maker.base, axis: size}
            if not maker.sources.legal(sizes) and maker.sources.tied([axis]):
                sizes = maker.sources.fitted(maker.base, {axis: size})
            if sizes[axis] == size and maker.add(Level.L3, f"{axis}_ragged", sizes):
                return


def _end(maker: Maker, axis: str, word: str, size: int) -> None:
    """Add a fixed axis at an end of what SPEC.md allows, unless a case has it; where it is too large, beside the smallest others.

    A kernel that was written for the request's sizes, all alike, may keep two taps of the three in registers.
    """
    if maker.has_met({axis: maker.fitted({axis: size})[axis]}):
        return
    for fewer in ((), maker.fixed, (*maker.fixed, *maker.dynamic)):
        sizes = maker.small_beside(axis, size, fewer)
        if sizes[axis] == maker.base[axis] or maker.add(Level.L3, f"{axis}_{word}", sizes):
            return
