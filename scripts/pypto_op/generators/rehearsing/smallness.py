"""A case in which all floating tensors are small at once: there alone a floor under a mean, a root or a sum of theirs shows.

Where one tensor is of ordinary size, what a kernel divides by is, too; and next to 1e-4, as in the zone `tiny`, a floor of
1e-9 under a mean of squares hides. Nearly all that comes out lies below SPEC.md's atol, so the natural error mostly judges.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch

from pypto_op.documents import constraints, ranges
from pypto_op.documents.knobs import SCALE, ZONE
from pypto_op.documents.rows import Rows
from pypto_op.generators.cases import float_scalars
from pypto_op.generators.rehearsing.first_candidate import Draw, FirstCandidate
from pypto_op.generators.rehearsing.trying import Case, Fit, Nothing, Tried, fitted, try_case
from pypto_op.twins.half_range import FLUSHED
from pypto_op.vocabulary import Level, Outcome

if TYPE_CHECKING:
    from pypto_op.generators.cases.case_maker import Knobs, Maker
    from pypto_op.generators.operator.sources import Sources

_SMALLEST = 2.0**-27
_SIZES = (("small_rows", 2.0**-48), ("normal", 2.0**-72), ("small_rows", _SMALLEST), ("normal", _SMALLEST))
"""Of the first two, a product of the smallest leaves float32, which a golden that divides first does not mind. Where every second
row is 2^-30 of the others, a floor under each row's share in their mean shows, too. Then what most bear."""
_REACH = ("float32", "bfloat16")
_GUARD = 1e-4
"""A scalar of a range, whose default is no greater, may be a guard such as an eps, which hides what is small."""
_DIGITS, _FEW = 2.0**-10, 0.01
"""A golden that is off by more in more than a few elements is a matter of luck there: another form keeps other bits."""


def small(maker: Maker) -> Iterator[Case]:
    """Yield cases in which all floating tensors are small, the smallest first, beside the least guards, then beside the usual.

    A tensor whose range, or the sum of whose rows, forbids it stays as it is, and so does a share that the golden mixes by. None
    where float16 is the one dtype, since it holds no such numbers.
    """
    dtype = next((word for word in _REACH if word in maker.sources.spec.supported_dtypes), "")
    names = list(_free(maker.sources))
    guards = _guards(maker)
    for zone, size in _SIZES if names and dtype else ():
        for beside in (guards, {}) if guards else ({},):
            zones = {} if zone == "normal" else {ZONE: dict.fromkeys(names, zone)}
            knobs: Knobs = {**zones, SCALE: dict.fromkeys(names, size), **beside}
            if maker.add(Level.L5, "all_small", maker.ragged, dtype=dtype, knobs=knobs):
                yield maker.cases[-1]


def _free(sources: Sources) -> Iterator[str]:
    """Yield the floating tensors that SPEC.md lets be small: where 0 is one of two ends, shares and codes, nobody means it."""
    half = {port.name for port in sources.tensors if port.dtype == "float16"} - set(sources.following)
    for name in sources.floating:
        kept = ranges.of(sources.spec.shape_constraints, name, sources.p0_sizes()[0])
        around = math.isinf(kept.low) or math.isinf(kept.high) or kept.low < 0.0 < kept.high
        fixed = name in sources.spec.fixed_inputs or sources.spec.rows.get(name, Rows()).measure
        if around and kept.low <= 0.0 <= kept.high and not fixed and name not in half and name not in sources.shares:
            yield name


def _guards(maker: Maker) -> dict[str, float]:
    """Return each float scalar that may be a guard, at its least; where that is 0, or next to 0, far below its default."""
    found = {}
    for name, scalar in float_scalars.scalars(maker).items():
        low = scalar.kept.low
        least = low if low > 0.0 and not scalar.kept.open_low else scalar.default * _SMALLEST
        if 0.0 < scalar.default <= _GUARD and low >= 0.0 and scalar.kept.holds(least):
            found[name] = least
    known: dict[str, Any] = {**maker.sources.whole_numbers, **maker.ragged, **found}
    return found if constraints.satisfied(maker.sources.spec.shape_constraints, known) else {}


def told(first: FirstCandidate, case: Case) -> Fit | Nothing:
    """Return what such a case becomes, or why it says nothing.

    It stands only where the golden keeps most of its digits, and a device that flushes the smallest numbers answers the same.
    """
    found = try_case(first, case)
    if isinstance(found, str):
        return Nothing(found)
    fit = fitted(first, found, drowned=True)
    if isinstance(fit, str):
        return Nothing(fit, found.case)
    if not _holds_flushed(first, found, fit):
        return Nothing("numbers on the way leave float32 at its lower end", found.case)
    if _is_noisy(first, found):
        return Nothing("right kernels may keep other digits there than the golden", found.case)
    return fit


def _holds_flushed(first: FirstCandidate, tried: Tried, fit: Fit) -> bool:
    """Whether the case takes the golden with its smallest numbers flushed."""
    cut = first.golden(list(tried.inputs.values()), twin=FLUSHED)
    return cut.outcome is Outcome.OK and Draw(first, fit.case, tried.inputs, tried.native).takes(cut.outputs)


def _is_noisy(first: FirstCandidate, tried: Tried) -> bool:
    """Whether more than a few elements of an output have lost more digits than another form of the golden might keep."""
    exact = first.golden(list(tried.inputs.values()), float64=True)
    if exact.outcome is not Outcome.OK or len(exact.outputs) != len(tried.native.outputs):
        return True
    pairs = zip(tried.native.outputs, exact.outputs, strict=True)
    return any(own.is_floating_point() and own.numel() and _lost_share(own, true) > _FEW for own, true in pairs)


def _lost_share(own: torch.Tensor, true: torch.Tensor) -> float:
    allowed = max(_DIGITS, 4.0 * torch.finfo(own.dtype).eps)
    return float(((own.double() - true.double()).abs() > allowed * true.double().abs()).double().mean())
