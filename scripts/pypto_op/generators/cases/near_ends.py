"""Shares and decays next to 0 and to 1 on long axes: what is carried over many tiles must still count in the last one.

A product of shares that are drawn evenly dies out within a tile, so that a kernel may do behind it what it likes. So does a
prefix of decisions: of 32 that each hold in every second place none is longer than 16.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from pypto_op.documents import golden_scan, ranges
from pypto_op.documents.knobs import OFFSET, ZONE
from pypto_op.documents.reductions import SO_FAR
from pypto_op.documents.rows import Rows
from pypto_op.generators.cases.case_maker import Knobs, Maker
from pypto_op.generators.operator.sources import Sizes
from pypto_op.vocabulary import Level

_MOST_TENSORS, _MOST_BESIDE = 2, 4
_FAR_ROW = 1155
"""A row on which distances up to 1024 end: a slope of a ten-thousandth shows what is wrong behind it."""


def near_ends(maker: Maker) -> None:
    """Add each shape of many tiles with a share next to an end, for tensors that SPEC.md bounds; after `sizes.long`.

    In each dtype: what is carried may be rounded in one of them only.
    """
    many = {axis: case["shape"] for case in maker.cases for axis in maker.long if f"_{axis}_many_tiles" in case["id"]}
    walked = maker.sources.golden_loops
    first, *others = maker.sources.spec.supported_dtypes
    for name, end in _ends(maker, _MOST_TENSORS):
        for axis, shape in many.items():
            longer = shape if walked else _longer(maker, axis, shape)
            for dtype, sizes in ((first, longer), *((other, shape) for other in others)):
                maker.add(Level.L4, f"{name}_near_{end:g}", sizes, dtype=dtype, knobs=_next_to(name, end))
    for axis, shape in _longest_fixed(maker).items():
        for name, end in _ends(maker, _MOST_BESIDE):
            maker.add(Level.L4, f"{name}_near_{end:g}_{axis}_greatest", shape, dtype=first, knobs=_next_to(name, end))


def _next_to(name: str, end: float) -> Knobs:
    return {ZONE: {name: "tiny"}, OFFSET: {name: end}}


def _longest_fixed(maker: Maker) -> dict[str, Sizes]:
    """Return the shapes with a fixed axis at the greatest size that SPEC.md names, where the golden goes along some axis."""
    golden = maker.sources.ws.golden, maker.sources.ws.golden_name()
    if not golden_scan.calls(*golden, SO_FAR):
        return {}
    greatest = {axis: size for axis, word, size in maker.named_ends if word == "greatest" and size > maker.base[axis]}
    return {axis: maker.fitted({axis: size}) for axis, size in greatest.items()}


def _longer(maker: Maker, axis: str, shape: Sizes) -> Sizes:
    """Return a shape with a far longer axis, where no other axis grows with it, nor a tensor beyond what a case may hold."""
    longer = maker.sources.fitted(shape, {axis: _FAR_ROW}, up=True)
    alone = {**longer, axis: shape[axis]} == shape
    return longer if alone and maker.sources.legal(longer) and maker.small(longer) else shape


def _ends(maker: Maker, most: int) -> Iterator[tuple[str, float]]:
    """Yield the first tensors whose values end at 0 or 1, with each such end: a factor of 1, or its logarithm, keeps all."""
    sources = maker.sources
    said = {name: ranges.of(sources.spec.shape_constraints, name) for name in sources.floating}
    kept = {name: of for name, of in said.items() if math.isfinite(of.high) and not sources.spec.rows.get(name, Rows()).measure}
    for name, of in list(kept.items())[:most]:
        yield from ((name, end) for end in (of.low, of.high) if end in (0.0, 1.0))
