"""Rows of two tensors that are multiplied with one another, and are the same: a key that is its query.

Where a golden normalises rows, their products are then as great as they can be. A temperature of 0.01 makes 100 of such a
cosine, and its exponential leaves float32: a kernel that subtracts no maximum was right on rows that were drawn one by one.
"""

from __future__ import annotations

from pypto_op.documents.knobs import ALIKE
from pypto_op.generators.cases import float_scalars
from pypto_op.generators.cases.case_maker import Maker
from pypto_op.generators.cases.values import widest
from pypto_op.vocabulary import Level

_MOST_PAIRS = 2


def add(maker: Maker) -> None:
    """Add a case of such rows for each pair of tensors, and one beside each end of a float scalar's range."""
    ends = [{name: end} for name, scalar in float_scalars.scalars(maker).items() for end in scalar.ends()]
    for name, other in maker.sources.meeting[:_MOST_PAIRS]:
        for scalars in ({}, *ends):
            knobs = {ALIKE: {name: other}, **scalars}
            maker.add(Level.L5, f"meeting_{name}_{other}", maker.ragged, dtype=widest(maker.sources), knobs=knobs)
