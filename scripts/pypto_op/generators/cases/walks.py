"""Sizes that every tiled axis of an operator is walked with: several tiles of each, and a rest."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Protocol

from pypto_op.generators.operator.sources import Sizes, Sources

SMALL = 19
"""Size of a dynamic axis where nothing is asked of it: no multiple of any tile, above the smallest one."""
TILES = 3
"""Tiles that a looped axis has at least where a case is about values: a state that is carried on shows in the third."""
REST = 3


class Grid(Protocol):
    """The axes of an operator, and the shape that its cases start from."""

    sources: Sources
    base: Sizes

    @property
    def dynamic(self) -> list[str]:
        """Axes whose length is known at run time only."""
        ...

    @property
    def long(self) -> list[str]:
        """Of those, the axes that kernels tile."""
        ...

    @property
    def fixed(self) -> list[str]:
        """Axes that SPEC.md fixes and that a kernel may tile."""
        ...

    def fitted(self, wanted: Mapping[str, int], *, up: bool = False) -> Sizes:
        """Return the base shape with some axes as near to what is wanted as is legal."""
        ...

    def small(self, sizes: Sizes, most: int = ...) -> bool:
        """Whether no tensor has more elements than `most`."""
        ...


def base(sources: Sources, p0: list[Sizes]) -> Sizes:
    """Return the sizes that other cases start from: the P0 shape that is the smallest once its dynamic axes are small."""
    return min((_shrunk(sources, sizes) for sizes in p0), key=lambda sizes: product(sources, sizes))


def _shrunk(sources: Sources, sizes: Sizes) -> Sizes:
    """Return sizes with dynamic axes made small where that is legal."""
    base = dict(sizes)
    for axis in sources.spec.dynamic_axes:
        if axis not in base:
            continue
        few = TILES if sources.is_list(axis) else SMALL if axis in (*sources.long, *sources.pools) else 2
        for size in (few, SMALL, 16, 32, 64, 128):
            smaller = sources.fitted(base, {axis: size})
            if smaller[axis] < base[axis] and sources.legal(smaller):
                base = smaller
                break
    return base


def product(sources: Sources, sizes: Sizes) -> int:
    """Return the number of elements of the largest tensor."""
    return max((1, *map(math.prod, sources.interfaces.resolve_shapes(sizes).values())))


def walked(grid: Grid, *, most: int) -> Sizes:
    """Return sizes with three tiles and a rest of each long axis, in the fewest batches and smallest steps that are needed.

    Args:
        grid: the axes and the base shape.
        most: elements that the largest tensor may have.
    """
    single = {axis: 1 for axis in grid.dynamic if axis not in (*grid.long, *grid.sources.pools)}
    for wanted in walks(grid):
        for fewer in ({}, single):
            sizes = grid.fitted({**wanted, **fewer}, up=True)
            if grid.sources.legal(sizes) and grid.small(sizes, most):
                return sizes
    return grid.base


def walks(grid: Grid) -> Iterator[Sizes]:
    """Yield sizes of the long axes, the most telling first: three steps of each and a rest, then less."""
    sources = grid.sources
    named = {axis: _walked_in(sources, axis) for axis in grid.long}
    fixed = {axis: sources.steps.of[axis][-1] for axis in grid.fixed if max(sources.steps.of.get(axis, (1,))) > 1}
    if fixed:
        yield _several(TILES, {**named, **fixed})
    least = _smallest(sources, named)
    for tiles, steps in ((TILES, named), (TILES, least), (2, named), (1, named), (1, least)):
        yield _several(tiles, steps)


def fewer_tiles(grid: Grid) -> Iterator[Sizes]:
    """Yield sizes with two tiles and a rest of each long axis, then with one, then of the smallest steps; then more batches."""
    named = {axis: _walked_in(grid.sources, axis) for axis in grid.long}
    batches = [axis for axis in grid.dynamic if axis not in grid.long]
    for tiles, steps in ((2, named), (1, named), (2, _smallest(grid.sources, named)), (1, _smallest(grid.sources, named))):
        if named:
            yield grid.fitted(_several(tiles, steps), up=True)
    for count in (5, 3):
        if batches:
            yield grid.fitted(dict.fromkeys(batches, count), up=True)


def one_tile(grid: Grid, *, smallest: bool) -> Sizes:
    """Return sizes of one tile and a rest of each long axis; `smallest`: of the smallest tile that kernels have."""
    named = {axis: _walked_in(grid.sources, axis) for axis in grid.long}
    return _several(1, _smallest(grid.sources, named) if smallest else named)


def _walked_in(sources: Sources, axis: str) -> int:
    """Return the step that decides how many tiles an axis has: the longest of its own."""
    return sources.steps_along(axis)[-1]


def _smallest(sources: Sources, named: Sizes) -> Sizes:
    return {axis: min(sources.tiles[0], step) for axis, step in named.items()}


def _several(tiles: int, steps: Sizes) -> Sizes:
    return {axis: tiles * step + REST + n for n, (axis, step) in enumerate(steps.items())}
