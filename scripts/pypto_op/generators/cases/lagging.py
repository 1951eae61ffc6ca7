"""Rows of two tensors where one place is low in the first and stands out in the second, so that a choice by both falls on it.

A golden that chooses by a sum, or a product, and then reports one of its parts at that place reports far ends of it here alone:
a token's probability behind the noise that chose it, an expert's own score behind the bias that chose it. Where tensors are drawn
one by one, what is chosen is high in both.
"""

from __future__ import annotations

import itertools

from pypto_op.documents import golden_scan
from pypto_op.documents.knobs import LAGGING
from pypto_op.documents.reductions import CHOOSES, TAKES
from pypto_op.generators.cases.case_maker import Maker
from pypto_op.generators.cases.values import widest
from pypto_op.generators.operator.sources import Sources
from pypto_op.vocabulary import Level

_MOST_PAIRS = 4


def add(maker: Maker) -> None:
    """Add a case of such rows for each pair of tensors."""
    for name, other in pairs(maker.sources):
        knobs = {LAGGING: {name: other}}
        maker.add(Level.L5, f"lagging_{name}_{other}", maker.ragged, dtype=widest(maker.sources), knobs=knobs)


def pairs(sources: Sources) -> list[tuple[str, str]]:
    """Return the pairs of tensors whose rows are equally long; none where the golden chooses no places."""
    golden = sources.ws.golden, sources.ws.golden_name()
    by_value = golden_scan.calls(*golden, {"max", "min"}) and golden_scan.calls(*golden, TAKES)
    if not by_value and not golden_scan.calls(*golden, CHOOSES):
        return []
    kept = {*sources.spec.fixed_inputs, *sources.spec.rows}
    free = [port for port in sources.tensors if port.name in sources.floating and port.shape and port.name not in kept]
    found = itertools.permutations(free, 2)
    return [(one.name, two.name) for one, two in found if one.shape[-1] == two.shape[-1]][:_MOST_PAIRS]
