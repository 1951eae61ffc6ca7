"""Indices that all name one place, the last: a kernel may have room for a few tokens of a row, or of an expert.

Indices that are drawn evenly name each place about as often, and in no tile one of them as often as the tile has room for.
"""

from __future__ import annotations

from pypto_op.documents.axes import INDICES
from pypto_op.documents.knobs import RANGE
from pypto_op.documents.rows import Rows
from pypto_op.generators.cases.case_maker import Maker
from pypto_op.python_text import expression, names_in
from pypto_op.vocabulary import Level

_MOST_TENSORS = 2


def add(maker: Maker) -> None:
    """Add a case for each tensor of indices whose greatest value names a size; a length that does so is all of it."""
    sources = maker.sources
    symbols = sources.interfaces.symbols
    found = []
    for port in sources.tensors:
        high = expression(sources.ranges.get(port.name, ("", ""))[1])
        free = port.name not in sources.spec.fixed_inputs and not sources.spec.rows.get(port.name, Rows()).order
        if port.dtype in INDICES and free and high is not None and not names_in(high).isdisjoint(symbols):
            found.append(port.name)
    dtype = sources.spec.supported_dtypes[0]  # named, so that no other case changes its own
    for name in found[:_MOST_TENSORS]:
        high_text = sources.ranges[name][1]
        knobs = {RANGE: {name: [f"{high_text} - 1", high_text]}}
        maker.add(Level.L3, f"one_{name}", maker.ragged, dtype=dtype, knobs=knobs)
