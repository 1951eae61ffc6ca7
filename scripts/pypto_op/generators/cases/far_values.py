"""Floating tensors near a far end of their range: sums of squares up to 1e9, of which ordinary draws reach a thousandth."""

from __future__ import annotations

import math

from pypto_op.documents import ranges
from pypto_op.documents.knobs import SCALE
from pypto_op.generators.cases.case_maker import Maker
from pypto_op.generators.cases.values import widest
from pypto_op.vocabulary import Level

_DRAWN = 4e4
"""The zone `huge` reaches it; beyond lies what a detour by 16 bits, or a bound by heart, does not hold."""
_DEVIATIONS = 4.0
"""The end lies so many standard deviations from 0: some values reach it, and few are folded back."""
_MOST_TENSORS = 3


def add(maker: Maker) -> None:
    """Add, for each of the first tensors whose range ends far beyond what is drawn, a case in which it alone reaches that end."""
    dtype = widest(maker.sources)
    said, found = maker.sources.spec.shape_constraints, list[tuple[str, float]]()
    for name in maker.sources.floating:
        kept = ranges.of(said, name, maker.base)
        end = max(abs(one) if math.isfinite(one) else 0.0 for one in (kept.low, kept.high))
        held = dtype != "float16" or name not in maker.sources.following
        if end > _DRAWN and held and name not in maker.sources.spec.fixed_inputs:
            found.append((name, end))
    for name, end in found[:_MOST_TENSORS]:
        maker.add(Level.L5, f"far_{name}", maker.ragged, dtype=dtype, knobs={SCALE: {name: end / _DEVIATIONS}})
