"""Rows that lie beyond every number that a kernel may begin a running maximum or minimum with, such as -1e9 or 1e30."""

from __future__ import annotations

import math
from collections.abc import Iterator

from pypto_op.documents import golden_scan, ranges
from pypto_op.documents.knobs import SCALE, ZONE
from pypto_op.documents.reductions import LARGEST, SMALLEST
from pypto_op.documents.taken_away import taken_away
from pypto_op.generators.cases.case_maker import Maker
from pypto_op.generators.cases.values import floating_of_many_rows, widest
from pypto_op.vocabulary import Level

_MOST_TENSORS = 4
_REACH = ("float32", "bfloat16")
_SCALE, _SCALE_OF_HALF = 1e30, 100.0
"""What the zone `low`, -200 and less, is multiplied by; float16 ends at -65504."""
_HIGH, _DEEP = 1e4, 1.6e4
"""The sizes of the factors where all products lie below -1e9. Float16 holds such factors, and a score stays above -1e30, with
which many right kernels hide what is masked."""


def add(maker: Maker) -> None:
    """Add such rows of each tensor where the golden takes a maximum, or a softmax; where it multiplies matrices, of products.

    Where it takes a minimum, or a maximum of what a tensor is taken away from, rows far above zero.
    """
    sources = maker.sources
    golden = sources.ws.golden, sources.ws.golden_name()
    ends = [golden_scan.calls(*golden, names) for names in (LARGEST, SMALLEST)]
    if not any(ends):
        return
    if golden_scan.multiplies_matrices(*golden):
        _products(maker)
        return
    dtype = next((word for word in _REACH if word in sources.spec.supported_dtypes), widest(sources))
    scale = _SCALE_OF_HALF if dtype == "float16" else _SCALE
    for word, name in _sides(maker, *ends):
        knobs = {ZONE: {name: "low"}, SCALE: {name: scale if word == "lowest" else -scale}}
        maker.add(Level.L5, f"{word}_{name}", maker.ragged, dtype=dtype, knobs=knobs)


def _sides(maker: Maker, largest: bool, smallest: bool) -> Iterator[tuple[str, str]]:
    """Yield, with a word for the side, each tensor that may lie beyond what such a kernel begins with."""
    sources = maker.sources
    away = taken_away(sources.ws.golden, sources.ws.golden_name())
    for name in sources.floating[:_MOST_TENSORS]:
        said = ranges.of(sources.spec.shape_constraints, name)
        if said.low == -math.inf and (largest or name in away):
            yield "lowest", name
        if said.high == math.inf and (smallest or name in away):
            yield "highest", name


def _products(maker: Maker) -> None:
    """Add products that all lie so low. Each row has a level of its own, so that no two are as good as equal: such a softmax
    chooses one of them, and which one rounding must not decide."""
    if len(several := floating_of_many_rows(maker.sources)) > 1:
        first, *rest = several
        zone = {first: "all_positive", **dict.fromkeys(rest, "ladder")}
        maker.add(
            Level.L5, "products_lowest", maker.ragged, knobs={ZONE: zone, SCALE: {**dict.fromkeys(rest, _DEEP), first: _HIGH}}
        )
