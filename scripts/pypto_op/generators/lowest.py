"""Rows that lie below every number that a kernel may begin a running maximum with, such as -1e9 or -1e30."""

from __future__ import annotations

import math

from pypto_op.documents import golden_scan, ranges
from pypto_op.documents.knobs import SCALE, ZONE
from pypto_op.documents.reductions import LARGEST
from pypto_op.generators.case_maker import Maker
from pypto_op.generators.values import floating_of_many_rows, widest
from pypto_op.vocabulary import Level

_MOST_TENSORS = 4
_REACH = ("float32", "bfloat16")
_SCALE, _SCALE_OF_HALF = 1e30, 100.0
"""What the zone `low`, -200 and less, is multiplied by; float16 ends at -65504."""
_HIGH, _DEEP = 1e4, 1.6e4
"""The sizes of the factors where all products lie below -1e9. Float16 holds such factors, and a score stays above -1e30, with
which many right kernels hide what is masked."""


def add(maker: Maker) -> None:
    """Add such rows of each tensor where the golden takes a maximum, or a softmax; where it multiplies matrices, of products."""
    sources = maker.sources
    if not golden_scan.calls(sources.ws.golden, sources.ws.golden_name(), LARGEST):
        return
    if golden_scan.multiplies_matrices(sources.ws.golden, sources.ws.golden_name()):
        _products(maker)
        return
    dtype = next((word for word in _REACH if word in sources.spec.supported_dtypes), widest(sources))
    scale = _SCALE_OF_HALF if dtype == "float16" else _SCALE
    for name in sources.floating[:_MOST_TENSORS]:
        if ranges.of(sources.spec.shape_constraints, name).low == -math.inf:
            maker.add(Level.L5, f"lowest_{name}", maker.ragged, dtype=dtype, knobs={ZONE: {name: "low"}, SCALE: {name: scale}})


def _products(maker: Maker) -> None:
    """Add products that all lie so low. Each row has a level of its own, so that no two are as good as equal: such a softmax
    chooses one of them, and which one rounding must not decide."""
    if len(several := floating_of_many_rows(maker.sources)) > 1:
        first, *rest = several
        zone = {first: "all_positive", **dict.fromkeys(rest, "ladder")}
        maker.add(
            Level.L5, "products_lowest", maker.ragged, knobs={ZONE: zone, SCALE: {**dict.fromkeys(rest, _DEEP), first: _HIGH}}
        )
