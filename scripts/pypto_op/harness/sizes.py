"""Sizes that break kernels: edges of tiles, several tiles and a rest, batches, primes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pypto_op.harness.material import Material, Sizes, symbols_of
from pypto_op.vocabulary import Level

if TYPE_CHECKING:
    from pypto_op.harness.case_maker import Maker

_SMALL = 19
"""Size of a dynamic axis where nothing is asked of it: no multiple of any tile, above the smallest one."""
_PRIMES = (37, 53, 17, 29)
_MANY_TILES = 5


def edges(maker: Maker) -> None:
    """Add each dynamic axis at the edges of its tiles, and each fixed one at a size that fills none."""
    for axis in maker.dynamic:
        for word, size in _edge_sizes(maker, axis):
            maker.add(Level.L3, f"{axis}_{word}", {**maker.base, axis: size})
    for axis in maker.fixed:
        _ragged(maker, axis)


def long(maker: Maker) -> None:
    """Add long axes and many batches."""
    tiles = maker.material.tiles
    for axis in maker.dynamic:
        if axis not in maker.long:
            maker.add(Level.L4, f"{axis}_many", {**maker.base, axis: 7})
            continue
        # Several of the largest tiles where that is small enough, else of the smallest.
        maker.add(Level.L4, f"{axis}_long", {**maker.base, axis: 3 * tiles[-1] + 3}) or maker.add(
            Level.L4, f"{axis}_long", {**maker.base, axis: 3 * tiles[0] + 3}
        )
        maker.add(Level.L4, f"{axis}_many_tiles", {**maker.base, axis: _MANY_TILES * tiles[-1] + 1}) or maker.add(
            Level.L4, f"{axis}_many_tiles", {**maker.base, axis: _MANY_TILES * tiles[0] + 1}
        )
    if len(maker.dynamic) > 1:
        sizes = {axis: 2 * tiles[0] + 3 if axis in maker.long else 3 for axis in maker.dynamic}
        maker.add(Level.L4, "all_axes", {**maker.base, **sizes})


def primes(maker: Maker) -> None:
    """Add all axes at primes, in each dtype."""
    primes = {axis: _PRIMES[n % len(_PRIMES)] if axis in maker.long else 5 for n, axis in enumerate(maker.dynamic)}
    for dtype in maker.material.spec.supported_dtypes:
        maker.add(Level.L5, "primes", {**maker.base, **primes}, dtype=dtype)


def _edge_sizes(maker: Maker, axis: str) -> Iterator[tuple[str, int]]:
    yield "one", 1
    if axis not in maker.long:
        yield "three", 3
        return
    for tile in maker.material.tiles:
        yield from ((f"{tile}_minus_1", tile - 1), (f"{tile}", tile), (f"{tile}_plus_1", tile + 1))
    tile = maker.material.tiles[0]
    yield from ((f"two_{tile}_minus_1", 2 * tile - 1), (f"two_{tile}_plus_1", 2 * tile + 1))


def base(material: Material, p0: list[Sizes]) -> Sizes:
    """Return the sizes that other cases start from: the smallest P0 shape, dynamic axes made small where that is legal."""
    smallest: Sizes = min(p0, key=lambda sizes: product(material, sizes))
    base = dict(smallest)
    for axis in material.spec.dynamic_axes:
        for size in (_SMALL if is_long(material, axis) else 2, _SMALL, 16, 32, 64, 128):
            smaller = {**base, axis: size}
            if axis in base and size < base[axis] and material.legal(smaller):
                base = smaller
                break
    return base


def is_long(material: Material, axis: str) -> bool:
    """Whether an axis is one that kernels tile: not one that only ever leads tensors of rank 3 and more (batch, heads).

    The only dynamic axis is tiled wherever it stands: something must be walked.
    """
    holding = [port for port in material.tensors if axis in symbols_of(port)]
    leads = bool(holding) and all(len(port.shape) >= 3 and port.shape[0] == axis for port in holding)
    return not leads or list(material.spec.dynamic_axes) == [axis]


def product(material: Material, sizes: Sizes) -> int:
    """Return the number of elements of the largest tensor."""
    return max((1, *map(math.prod, material.interfaces.resolve_shapes(sizes).values())))


def _ragged(maker: Maker, axis: str) -> None:
    """Add one size of a fixed axis that fills no tile, of the largest tile for which there is a legal one."""
    for tile in reversed(maker.material.tiles):
        for size in range(tile + 1, 2 * tile):
            if maker.add(Level.L3, f"{axis}_ragged", {**maker.base, axis: size}):
                return
