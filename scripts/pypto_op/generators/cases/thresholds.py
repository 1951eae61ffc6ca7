"""Steps of a golden that are met exactly: `<` in the place of `<=` shows nowhere else.

Sums that equal a float scalar which the golden compares with, and powers of two where it takes an exponent.
"""

from __future__ import annotations

import math

from pypto_op.documents import golden_scan, ranges
from pypto_op.documents.knobs import SCALE, ZONE
from pypto_op.documents.reductions import EXPONENTS
from pypto_op.generators.cases import float_scalars
from pypto_op.generators.cases.case_maker import Maker
from pypto_op.generators.cases.values import widest
from pypto_op.vocabulary import Level

_MOST_TENSORS = 4
_STEPS = 32
"""The zone `grid` holds multiples of 1 / 32, whose sums are exact in every order."""
_HALVES = (0.5, 0.75)
"""What the largest parts of a row in halves add up to."""
_LOW = 2.0**-70
"""The zone `powers` holds 2^-47 to 2^40; times this they stay normal numbers in float32 and bfloat16."""


def add(maker: Maker) -> None:
    """Add each compared scalar at a value that sums reach exactly: of a grid, and of rows that halve what is left."""
    sources = maker.sources
    compared = golden_scan.compared_names(sources.ws.golden, sources.ws.golden_name())
    parts = [name for name in sources.floating if _holds_parts(maker, name)]
    for name, scalar in float_scalars.scalars(maker).items():
        if name not in compared:
            continue
        if (met := round(scalar.default * _STEPS) / _STEPS) and scalar.kept.holds(met):
            maker.add(Level.L3, f"{name}_met", maker.ragged, knobs={ZONE: "grid", name: met})
        for met in _HALVES:
            if parts and scalar.kept.holds(met):
                maker.add(Level.L3, f"{name}_halves", maker.ragged, knobs={ZONE: dict.fromkeys(parts, "halves"), name: met})
    if golden_scan.calls(sources.ws.golden, sources.ws.golden_name(), EXPONENTS):
        for name in sources.floating[:_MOST_TENSORS]:
            for dtype in sources.spec.supported_dtypes:  # a logarithm that is off by one rounding is another whole number there
                maker.add(Level.L3, f"powers_{name}", maker.ragged, dtype=dtype, knobs={ZONE: {name: "powers"}})
            if (wide := widest(sources)) != "float16":  # a floor of the exponent shows far below what a float16 holds
                knobs = {ZONE: {name: "powers"}, SCALE: {name: _LOW}}
                maker.add(Level.L3, f"powers_low_{name}", maker.ragged, dtype=wide, knobs=knobs)


def _holds_parts(maker: Maker, name: str) -> bool:
    """Whether SPEC.md gives an input values from 0 on: probabilities, shares, costs."""
    said = ranges.of(maker.sources.spec.shape_constraints, name, maker.base)
    return said.low == 0.0 and (said.high >= 1.0 or math.isinf(said.high))
