"""8-bit codes near their ends: an accumulator of too few bits holds what codes that are drawn evenly add up to."""

from __future__ import annotations

import math
from collections.abc import Iterator

from pypto_op.documents.knobs import RANGE, ZONE
from pypto_op.generators.cases.case_maker import Maker
from pypto_op.generators.operator.sources import CODES, Sources
from pypto_op.vocabulary import Level


def add(maker: Maker) -> None:
    """Add cases whose 8-bit codes lie near their ends, in the P0 shape that sums the most of them.

    Codes that are drawn evenly cancel, so that no sum comes near what an accumulator of too few bits holds. Of one sign they
    reach the greatest sum, of two the least; small factors beside them keep a 16-bit output finite.
    """
    ends = dict(_codes(maker.sources))
    if not ends:
        return
    shape = max(maker.p0, key=lambda sizes: math.prod(sizes.values()))
    great = {name: [high - max(1, (high - low) // 16), high] for name, (low, high) in ends.items()}
    least = {name: [low, low + max(1, (high - low) // 16)] for name, (low, high) in ends.items()}
    for dtype in maker.sources.spec.supported_dtypes:
        maker.add(Level.L5, "great_codes", shape, dtype=dtype, knobs={RANGE: great})
        maker.add(Level.L5, "great_codes_small_factors", shape, dtype=dtype, knobs={RANGE: great, ZONE: "tiny"})
    first = next(iter(ends))
    maker.add(Level.L5, "opposed_codes", shape, knobs={RANGE: {**least, first: great[first]}, ZONE: "tiny"})


def _codes(sources: Sources) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield each 8-bit tensor whose values are numbers in a range, with its least one and the first that is too large."""
    for port in sources.tensors:
        low, high = sources.ranges.get(port.name, ("", ""))
        if port.dtype in CODES and str(low).lstrip("-").isdigit() and str(high).lstrip("-").isdigit():
            yield port.name, (int(low), int(high))
