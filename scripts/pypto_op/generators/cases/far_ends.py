"""Ends of a float scalar's range that ordinary inputs do not reach: a bound of 100 on lengths that are all near 1.

Such a case differs from its default's, and not from what a kernel gives that holds the scalar to ten.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from pypto_op.documents.knobs import SCALE, ZONE
from pypto_op.generators.cases import float_scalars, values
from pypto_op.generators.cases.case_maker import Case, Maker

_FAR = 16.0
"""So many times its default is far from it."""
_MILD = 100.0
"""A thousandth of the square of a tensor so large still leaves what is kept beside it in sight."""


def between(maker: Maker, case: Case) -> dict[str, float]:
    """Return, for a case at the far end of one scalar's range, that scalar halfway between default and end, by factors.

    Args:
        maker: of the suite.
        case: one of its cases.

    Returns:
        Empty for another case.
    """
    usual, floats = float_scalars.defaults(maker.sources), float_scalars.scalars(maker)
    varied = [name for name, default in usual.items() if case.get(name, default) != default]
    if len(varied) != 1 or ZONE in case:
        return {}
    [name] = varied
    end, default = case[name], usual[name]
    if end not in floats[name].ends() or default == 0.0 or end / default < _FAR:
        return {}
    return {name: math.copysign(math.sqrt(end * default), end)}


def telling(maker: Maker, case: Case) -> Iterator[Case]:
    """Yield cases in which a scalar may show that this one hides (`values.telling`), and at a far end of its range.

    There first small tensors and one large one, then a share next to 1 beside each: what a share of 0.999 leaves of the
    tensors of this call is so little that a ratio to it leaves the ordinary.
    """
    yield from values.telling(maker, case)
    names = between(maker, case)
    if not names:
        return
    sized = list(values.beside_sizes(maker, case))
    yield from sized
    mild = [
        {**other, "id": f"{other['id']}_mild", SCALE: dict.fromkeys(other[SCALE], _MILD)} for other in sized if SCALE in other
    ]
    floats, shares = float_scalars.scalars(maker), maker.sources.shares
    for name, scalar in floats.items():
        ends = [*scalar.near_open_ends(), *(scalar.ends() if name in shares else [])]
        for near in () if name in names else ends:
            for other in (case, *mild, *sized):
                yield {**other, name: near, "id": f"{other['id']}_{name}_{near:g}"}
