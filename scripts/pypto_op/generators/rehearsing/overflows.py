"""Cases in which a number on the way leaves the range of float16, and the right answer does not.

A kernel that computes in float16 what SPEC.md wants in float32 passes where numbers are small. `huge` shows it where what lies
between grows faster than the output; here one tensor is large, or two are.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch

from pypto_op.documents import golden_scan
from pypto_op.documents.knobs import SCALE, ZONE
from pypto_op.documents.reading import read_text
from pypto_op.generators.operator.indices import same
from pypto_op.generators.rehearsing.first_candidate import Draw, FirstCandidate
from pypto_op.generators.rehearsing.trying import Case, Fit, Nothing, Tried, answered, fitted, parts, try_case
from pypto_op.twins.half_range import HALF_RANGE
from pypto_op.vocabulary import Level, Outcome

if TYPE_CHECKING:
    from pypto_op.generators.cases.case_maker import Knobs, Maker

_LARGE, _RATHER_LARGE, _SMALL = 1e4, 1e3, 1e-4
_MOST_TENSORS = 4
_NARROW = re.compile(
    r"\bmay (?:also )?be (?:rounded|kept|held|narrowed)\b[^.]*\b(?:16 bits|float16|d?type of)|\brounded to [^.,;]* before\b", re.I
)
"""SPEC.md lets numbers between be 16 bits wide: then a right kernel may overflow in float16."""


def beyond(maker: Maker, dtype: str) -> Iterator[Case]:
    """Yield cases of a dtype whose numbers between may leave the range of float16, the plainest first.

    None where SPEC.md allows 16 bits: there right kernels may fail.
    """
    said = _NARROW.search(read_text(maker.sources.ws.spec)) if dtype == "float16" else None
    if said:
        maker.dropped["L5_overflow_float16"] = f"SPEC.md allows 16 bits on the way: {' '.join(said[0].split())[:80]}"
        return
    for word, knobs in _knobs(maker.sources.floating[:_MOST_TENSORS]):
        if maker.add(Level.L5, word, maker.ragged, dtype=dtype, knobs=knobs):
            yield maker.cases[-1]


def _knobs(names: tuple[str, ...]) -> Iterator[tuple[str, Knobs]]:
    if names:
        yield "overflow_sums", {ZONE: "all_positive", SCALE: _LARGE}
    for name in names if len(names) > 1 else ():
        yield f"overflow_{name}", {SCALE: {name: _LARGE}}
    small = dict.fromkeys(names, _SMALL)  # what an output is multiplied by last may be small
    for name in names if len(names) > 1 else ():
        yield f"overflow_{name}_alone", {SCALE: {**small, name: _LARGE}}
    for one, two in itertools.combinations(names, 2) if len(names) > 2 else ():
        yield f"overflow_{one}_{two}", {SCALE: {**small, one: _RATHER_LARGE, two: _RATHER_LARGE}}


def shows(first: FirstCandidate, case: Case) -> bool:
    """Whether a case refuses the golden whose numbers end where float16 does."""
    found = answered(first, case)
    return isinstance(found, Tried) and _refuses(first, found)


def overflowing(first: FirstCandidate, case: Case) -> Fit | Nothing:
    """Return what such a case becomes, or why it says nothing; `case` of that is None where no number leaves the range."""
    found = try_case(first, case)
    if isinstance(found, str):
        return Nothing(found)
    if not _refuses(first, found):
        return Nothing("no number on the way leaves the range of float16")
    fit = fitted(first, found)
    if isinstance(fit, str):
        return Nothing(fit, found.case)
    if not _holds_other_forms(first, found, fit):
        return Nothing("right kernels may cancel there, which subtract in another order", found.case)
    return fit


def _holds_other_forms(first: FirstCandidate, tried: Tried, fit: Fit) -> bool:
    """Whether a case takes right kernels that subtract otherwise than the golden, where that one subtracts.

    A target that is carried, less a value, cancels where a golden that carries the difference does not. Such a kernel is as near
    as if its inputs were off by a few roundings; on a case that holds these, it passes.
    """
    if not golden_scan.scan(first.ws.golden, first.ws.golden_name()).subtractions:
        return True
    names = [name for name, value in tried.inputs.items() if isinstance(value, torch.Tensor)]
    return not parts(first, tried, fit, names)


def _refuses(first: FirstCandidate, tried: Tried) -> bool:
    cut = first.golden(list(tried.inputs.values()), twin=HALF_RANGE)
    if cut.outcome is not Outcome.OK or same(cut.outputs, tried.native.outputs):
        return False
    return not Draw(first, tried.case, tried.inputs, tried.native).takes(cut.outputs)
