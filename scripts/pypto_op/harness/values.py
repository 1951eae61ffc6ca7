"""Values that break kernels: zones, other scalars, NaN and -inf, sums that cancel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pypto_op.documents import constraints
from pypto_op.harness.material import FLOATS, INTEGERS, Material
from pypto_op.stress.author import RELATIVE_GAP
from pypto_op.vocabulary import Level

if TYPE_CHECKING:
    from pypto_op.harness.case_maker import Case, Knobs, Maker

SEED = 42
WORST_SUM = "*"
"""Stands for the expression of a cancellation case that is about whichever sum of the golden cancels worst."""
ZONES: tuple[tuple[Level, str, Knobs], ...] = (
    (Level.L3, "last_spike", {"zone": "last_spike"}),
    (Level.L3, "positions", {"zone": "positions"}),
    (Level.L3, "grid", {"zone": "grid"}),
    (Level.L5, "tiny", {"zone": "tiny"}),
    (Level.L5, "huge", {"zone": "huge", "scale": 1e4}),
    (Level.L5, "alternating", {"zone": "alternating"}),
    (Level.L5, "shift", {"zone": "shift"}),
    (Level.L5, "all_negative", {"zone": "all_negative"}),
    (Level.L5, "low", {"zone": "low"}),
)
_SMALL_SCALAR = 1e-2
_INSTEAD_OF_SMALL = 0.5
"""Another value of a float scalar is half its default; half an eps would not show, so small ones become this."""
_MOST_STRESSES = 4


def scalars(maker: Maker) -> None:
    """Add another value of each scalar."""
    for port in maker.material.interfaces.primary_inputs:
        if not port.shape and port.dtype == "bool":
            for value in (True, False):
                maker.add(Level.L3, f"{port.name}_{value}".lower(), maker.ragged, knobs={port.name: value})
        default = maker.material.scalars.get(port.name)
        if port.dtype in FLOATS and isinstance(default, (int, float)):
            other = default / 2 if abs(default) >= _SMALL_SCALAR else _INSTEAD_OF_SMALL
            maker.add(Level.L3, f"other_{port.name}", maker.ragged, knobs={port.name: other})
        if port.dtype in INTEGERS and isinstance(default, int) and port.name not in maker.base:
            for number in _other_integers(maker.material, port.name, default):
                maker.add(Level.L3, f"{port.name}_{number}", maker.ragged, knobs={port.name: number})


def specials(maker: Maker) -> None:
    """Add a NaN and masks of -inf where SPEC.md says what they mean."""
    for zone, legal in (("one_nan", maker.material.says_nan), ("masked", maker.material.says_minus_inf)):
        for number, name in enumerate(maker.material.floating[:_MOST_STRESSES] if legal else ()):
            # The first in each dtype: what a kernel does for 16 bits only may lose a NaN there only.
            for dtype in maker.material.spec.supported_dtypes if number == 0 else ("",):
                maker.add(Level.L5, f"{zone}_{name}", maker.ragged, dtype=dtype, knobs={"zone": {name: zone}})


def _other_integers(material: Material, name: str, default: int) -> Iterator[int]:
    """Yield other values of a whole number, the most telling first; the rehearsal keeps those that the golden minds.

    Where SPEC.md's constraints say nothing about it, its sign stays, but that a negative one may stand for "none".
    """
    said = material.spec.shape_constraints
    any_sign = default < 0 or constraints.mentioned(said, name)
    for value in dict.fromkeys((-default, 2 * default, default + 1, 1, 7, default - 1, 0)):
        legal = (any_sign or value > 0) and constraints.satisfied(said, {**material.p0_sizes()[0], name: value})
        if legal and value != default:
            yield value


def varied_integer(case: Case, scalars: Mapping[str, Any]) -> str:
    """Return the name of the whole number of which a case has another value than the default; "" where there is none."""
    names = (name for name, default in scalars.items() if type(default) is int and case.get(name, default) != default)
    return next(names, "")


def zones(maker: Maker, level: Level) -> None:
    """Add the zones of one level, for all floating tensors at once."""
    if not maker.material.floating:
        return
    for at, word, knobs in ZONES:
        if at is level:
            maker.add(level, word, maker.ragged, knobs=knobs)


def cancellation(maker: Maker) -> None:
    """Add a case per subtraction of the golden and one for its worst sum; the rehearsal searches for their recipes.

    In the widest dtype: there what is lost is lost by the kernel, not by the inputs' own rounding.
    """
    material = maker.material
    dtypes = [word for word in FLOATS if word in material.spec.supported_dtypes]
    target = material.interfaces.final_outputs[0].name
    expressions = [found.expression for found in material.scan.subtractions] + [WORST_SUM]
    for number, expression in enumerate(expressions if material.floating else []):
        stress = {"target": target, "expression": expression, "relative_gap": RELATIVE_GAP, "seed": SEED}
        maker.add(
            Level.L5,
            f"cancellation_stress_{number}",
            maker.small_ragged,
            dtype=dtypes[0] if dtypes else "",
            knobs={"cancellation_stress": stress},
        )
