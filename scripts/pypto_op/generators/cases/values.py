"""Values that break kernels: zones, other scalars, NaN and -inf, sums that cancel."""

from __future__ import annotations

import ast
import math
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pypto_op.documents import constraints, ranges, special_values
from pypto_op.documents.knobs import ALIKE, SCALE, SET, ZONE
from pypto_op.documents.reading import read_text
from pypto_op.documents.rows import Rows
from pypto_op.generators.cases import float_scalars, row_zeros, whole_numbers
from pypto_op.generators.cases.float_scalars import Scalar
from pypto_op.generators.cases.refusals import refusals
from pypto_op.generators.operator.sources import FLOATS, Sources
from pypto_op.judge.stressing import RELATIVE_GAP
from pypto_op.python_text import expression
from pypto_op.vocabulary import Level

if TYPE_CHECKING:
    from pypto_op.generators.cases.case_maker import Case, Knobs, Maker

SEED = 42
WORST_SUM = "*"
"""Stands for the expression of a cancellation case that is about whichever sum of the golden cancels worst."""
SEARCHED = "searched_shape"
"""Key of a cancellation case until the rehearsal has found its recipe: the smaller shape that it is searched on."""
ZONES: tuple[tuple[Level, str, Knobs], ...] = (
    (Level.L3, "last_spike", {ZONE: "last_spike"}),
    (Level.L3, "positions", {ZONE: "positions"}),
    (Level.L3, "grid", {ZONE: "grid"}),
    (Level.L5, "tiny", {ZONE: "tiny"}),
    (Level.L5, "huge", {ZONE: "huge", SCALE: 1e4}),
    (Level.L5, "alternating", {ZONE: "alternating"}),
    (Level.L5, "shift", {ZONE: "shift"}),
    (Level.L5, "all_negative", {ZONE: "all_negative"}),
    (Level.L5, "low", {ZONE: "low"}),
    (Level.L5, "rising", {ZONE: "rising", SCALE: 270.0}),
    (Level.L5, "falling", {ZONE: "falling", SCALE: 270.0}),
)
"""Zones of all floating tensors at once. A slope of 270 leaves 90 to each third: exp of less does not overflow in float32."""

_PRODUCT = 6.0
"""The slope of each factor of a product: over 64 terms, divided by their root, it makes 288."""
_DEEP = 40.0
"""The size of each factor where all products are far below zero: a score below -1e4 lies under what a kernel may hide with."""
_LARGE = 1e4
"""So many times as large as the others is one tensor, which float16 still holds."""
_WIDEST = 8.0
"""No ordinary draw is larger: times this a factor stays within a range of SPEC.md."""
_BEYOND_HALF = 1e5
"""Half of the values times this exceed 65504."""
_MOST_TENSORS = 4
_MOST_PAIRS = 3
_UNMEASURED = ("masked", "closed", "one_inf", "largest")
_INFINITE = ("one_nan", "masked", "closed", "one_inf")
_LOW, _LOW_OF_16_BITS = 1e7, 100.0
"""What `low`, -200 and less, is multiplied by."""


def scalars(maker: Maker) -> None:
    """Add another value of each scalar, of a float in each dtype: what a kernel honours in one dtype it may forget in another."""
    floats = float_scalars.scalars(maker)
    for port in maker.sources.interfaces.primary_inputs:
        if not port.shape and port.dtype == "bool":
            for value in (True, False):
                maker.add(Level.L3, f"{port.name}_{value}".lower(), maker.ragged, knobs={port.name: value})
        if (scalar := floats.get(port.name)) is not None:
            _float_scalar(maker, port.name, scalar)
        whole_numbers.add(maker, port.name)
    whole_numbers.together(maker)
    whole_numbers.few_at_ends(maker)
    whole_numbers.beside_axes(maker)


def _float_scalar(maker: Maker, name: str, scalar: Scalar) -> None:
    """Add other values of one float scalar."""
    dtypes, wide = maker.sources.spec.supported_dtypes, widest(maker.sources)
    for other in scalar.others()[:1]:
        for dtype in dtypes:
            maker.add(Level.L3, f"other_{name}", maker.ragged, dtype=dtype, knobs={name: other})
        _among_unlike_rows(maker, name, other)
    for other in scalar.across()[:1]:  # a kernel may take the larger of an eps and its default
        maker.add(Level.L3, f"{name}_across", maker.ragged, dtype=wide, knobs={name: other})
    for other in scalar.far_below():
        maker.add(Level.L3, f"{name}_far", maker.ragged, dtype=wide, knobs={name: other})
    for other in scalar.far_above():
        maker.add(Level.L3, f"{name}_far_above", maker.ragged, dtype=wide, knobs={name: other})
    for other in scalar.opposite():
        maker.add(Level.L3, f"{name}_opposite", maker.ragged, dtype=wide, knobs={name: other})
    for near in scalar.near_open_ends():  # a kernel may do otherwise from a decay of 0.99 on
        maker.add(Level.L3, f"{name}_near_end", maker.ragged, dtype=wide, knobs={name: near})
    least = _at_least(maker.sources)
    for end in scalar.ends():
        # Among values that hardly differ, every one counts at an end: a share of 0.99 takes each of 96 even parts.
        # A mix by 1 is one of two values: where x is far smaller, `v + 1 * (x - v)` loses what `0 * v + 1 * x` keeps.
        alike = [] if end == 1.0 and name in maker.sources.shares else maker.p0
        for shape, knobs in ((maker.ragged, {}), *((shape, {ZONE: tiny(maker.sources)}) for shape in alike)):
            for dtype in dtypes:  # in bfloat16 such values may be all the same
                maker.add(Level.L3, f"end_of_{name}", shape, dtype=dtype, knobs={name: end, **knobs})
        if least:
            maker.add(Level.L3, f"end_of_{name}_beside_least", maker.ragged, dtype=wide, knobs={name: end, ZONE: least})
    for dtype in dtypes if scalar.may_be_zero() and not _refuses_zero(maker, name, scalar.default) else ():
        maker.add(Level.L3, f"zero_{name}", maker.ragged, dtype=dtype, knobs={name: 0.0})


def _at_least(sources: Sources) -> dict[str, str]:
    """Return the zone in which the tensors that SPEC.md keeps above 0 are about twice their least; none where all are such.

    A quotient by one of them is largest there, beside others of ordinary size: what a kernel holds its outputs to shows.
    """
    said = {name: ranges.of(sources.spec.shape_constraints, name).low for name in sources.floating}
    lengths = {name: rows.kept.low for name, rows in sources.spec.rows.items() if rows.measure == "length" and not rows.is_fixed}
    found = [name for name, low in said.items() if max(low, lengths.get(name, 0.0)) > 0.0]
    return dict.fromkeys(found, "tiny") if len(found) < len(said) else {}


def _refuses_zero(maker: Maker, name: str, default: float) -> bool:
    """Whether SPEC.md says that a scalar is never 0: "positive", or that the wrapper refuses it: "temperature below 0.25"."""
    if special_values.is_never_zero(read_text(maker.sources.ws.spec), name):
        return True
    told = (fault["value"] for fault in refusals(type(maker)(maker.sources)) if fault.get("input") == name and "value" in fault)
    return any(min(default, 0.0) <= value <= max(default, 0.0) for value in told)


def _among_unlike_rows(maker: Maker, name: str, other: float) -> None:
    """Add another value of a float scalar beside rows of sizes of their own, where fixed axes are as in the largest P0 shape.

    Among rows of one size an eps within each of two norms is nearly one behind their product; and what a small scalar is a
    factor of, such as neighbours beyond a tile, shows beside its default nowhere.
    """
    rows, names = maker.sources.spec.rows, _of_many_rows(maker.sources, maker.sources.floating[:_MOST_TENSORS])
    zone = {tensor: "row_scaled" for tensor in names if not rows.get(tensor, Rows()).is_fixed}
    fixed = [{axis: size for axis, size in shape.items() if axis not in maker.dynamic} for shape in maker.p0]
    if zone:
        shape = maker.sources.fitted(maker.ragged, max(fixed, key=lambda sizes: math.prod(sizes.values()), default={}))
        maker.add(Level.L3, f"other_{name}_rows", shape, dtype=widest(maker.sources), knobs={ZONE: zone, name: other})


def telling(maker: Maker, case: Case) -> Iterator[Case]:
    """Yield cases in which another value of a float scalar may show, which this one hides: an eps under a step of a thousandth.

    First small inputs, since an eps that bounds a norm from below shows on no others, and one large tensor; then further values
    of the scalar, and all of them beside other values of the other scalars, one by one and together.
    """
    usual, floats = float_scalars.defaults(maker.sources), float_scalars.scalars(maker)
    varied = [name for name, default in usual.items() if case.get(name, default) != default]
    zones = case.get(ZONE)
    if len(varied) != 1 or (isinstance(zones, Mapping) and set(zones.values()) == {"zero_row"}):
        return  # a case of flat buffers of zeros is about those, and its scalars are out of their way
    [name] = varied
    ways = [floats[name].across(), floats[name].far_above(), floats[name].others()]
    own = [0.0] if case[name] == 0.0 else next((way for way in ways if case[name] in way[:1]), [])
    if not own:  # an end of its range, beside the case that is for this scalar
        return
    if ZONE not in case:
        yield from beside_sizes(maker, case)
    rest = {other: values[0] for other in usual if other != name and (values := floats[other].others())}
    besides = [{}, *({other: value} for other, value in rest.items()), *([rest] if len(rest) > 1 else [])]
    tried = [{**beside, name: value} for beside in besides for value in own]
    for number, scalars_of in enumerate(tried):
        sizes: dict[str, Any] = {**case["shape"], **scalars_of}
        if constraints.satisfied(maker.sources.spec.shape_constraints, sizes) and scalars_of != {name: case[name]}:
            yield {**case, **scalars_of, "id": f"{case['id']}_beside{number}"}


def beside_sizes(maker: Maker, case: Case) -> Iterator[Case]:
    """Yield a case with all tensors small, and with one far larger than the others: there an upper bound of a ratio shows.

    Scalars that may be 0 are so beside the large one, since a share of it, such as a weight decay, bounds the ratio, too.
    """
    names, idle = maker.sources.floating, idle_scalars(maker)
    if names:
        yield {**case, "id": f"{case['id']}_beside_tiny", ZONE: tiny(maker.sources)}
    for tensor in names[:_MOST_TENSORS] if len(names) > 1 else ():
        if ranges.of(maker.sources.spec.shape_constraints, tensor).high >= _WIDEST * _LARGE:
            yield {**idle, **case, "id": f"{case['id']}_beside_large_{tensor}", SCALE: {tensor: _LARGE}}


def idle_scalars(maker: Maker) -> dict[str, float]:
    """Return 0 for each float scalar that may be 0 by a range in SPEC.md, and by which the golden mixes nothing."""
    scalars = {name: one for name, one in float_scalars.scalars(maker).items() if name not in maker.sources.shares}
    said = {name: one for name, one in scalars.items() if one.kept != ranges.Range() and one.may_be_zero()}
    return {name: 0.0 for name, one in said.items() if not _refuses_zero(maker, name, one.default)}


def set_apart(maker: Maker) -> None:
    """Add cases in which a third of an integer tensor is what the golden sets apart: a label that is ignored, padding.

    In each dtype and shape of the request, since a kernel may forget it in one dtype, or where rows are wide. A scalar that says
    which number that is takes its default there, and on the ragged shape two others: one more below every index,
    and one that is an index too, since a kernel may know the default by heart, or take whatever is negative.
    """
    shapes = (maker.ragged, *maker.p0)  # beside a large table a draw may hold none of what stands for "nothing"
    for tensor, numbers in maker.sources.apart.items():
        for number in numbers:
            if isinstance(number, int):
                for dtype in maker.sources.spec.supported_dtypes:
                    for shape in shapes:
                        maker.add(Level.L3, f"{tensor}_set_apart", shape, dtype=dtype, knobs={SET: {tensor: number}})
                continue
            default = maker.sources.scalars.get(number)
            for dtype in maker.sources.spec.supported_dtypes if isinstance(default, int) else ():
                for shape in shapes:
                    maker.add(Level.L3, f"{tensor}_{number}", shape, dtype=dtype, knobs={SET: {tensor: default}})
            if isinstance(default, int):
                _elsewhere(maker, tensor, number)
            for other in (-7, 1) if isinstance(default, int) else ():
                legal = constraints.satisfied(maker.sources.spec.shape_constraints, {**maker.base, number: other})
                if legal and other != default:
                    knobs = {number: other, SET: {tensor: other}}
                    maker.add(Level.L3, f"{tensor}_other_{number}", maker.ragged, knobs=knobs)


def _elsewhere(maker: Maker, tensor: str, number: str) -> None:
    """Add the scalar that sets a number apart at -1, "none" where no index is negative, at the last index, and at 0.

    A kernel may count from the end, as Python does, or know small numbers only; a wrapper may take 0 for "not given".
    """
    low, high = maker.sources.ranges[tensor]
    beyond = constraints.value_of(expression(high) or ast.Constant(""), maker.ragged)
    if not low.lstrip("-").isdigit() or int(low) < 0 or beyond is None:
        return
    turns = {"none": (-1, ""), "last": (beyond - 1, ""), "zero": (0, widest(maker.sources))}  # named: others keep their dtype
    for word, (value, dtype) in turns.items():
        knobs: Knobs = {number: value} if word == "none" else {number: value, SET: {tensor: value}}
        legal = constraints.satisfied(maker.sources.spec.shape_constraints, {**maker.ragged, number: value})
        if legal and value != maker.sources.scalars[number]:
            maker.add(Level.L3, f"{number}_{word}", maker.ragged, dtype=dtype, knobs=knobs)


def mixed(maker: Maker) -> None:
    """Add cases in which one tensor is unlike the others: of another sign, with rows of sizes of their own, with a zero row."""
    names = maker.sources.floating[:_MOST_TENSORS]
    several = _of_many_rows(maker.sources, names)
    for name in names:
        others = {other: "all_positive" for other in maker.sources.floating if other != name}
        if others and ranges.of(maker.sources.spec.shape_constraints, name, maker.base).low >= 0.0:
            maker.pass_turn()  # folded into its range, it would be the positive one that it is anyway
        elif others:
            maker.add(Level.L3, f"negative_{name}", maker.ragged, knobs={ZONE: {**others, name: "all_negative"}})
        rows = maker.sources.spec.rows.get(name, Rows())
        if name in several and rows.may_be_zero:
            maker.add(Level.L3, f"zero_row_{name}", maker.ragged, knobs={ZONE: row_zeros.zone(maker.sources, name)})
        if name in several and not rows.is_fixed:
            maker.add(Level.L5, f"row_scaled_{name}", maker.ragged, knobs={ZONE: {name: "row_scaled"}})
    quantised = [name for name in names if name in several and maker.sources.has_codes]
    for name in (name for name in quantised[:1] if maker.sources.spec.rows.get(name, Rows()).may_be_zero):
        for dtype in maker.sources.spec.supported_dtypes:  # a floor under the step of a row's codes shows on no others
            maker.add(Level.L5, f"small_rows_{name}", maker.ragged, dtype=dtype, knobs={ZONE: {name: "small_rows"}})
    if len(several) > 1:
        first, *rest = several
        for word in ("rising", "falling"):  # the products of two slopes: scores that rise, or fall, along what is summed later
            zone = {first: "rising", **dict.fromkeys(rest, word)}
            knobs = {ZONE: zone, SCALE: dict.fromkeys(zone, _PRODUCT)}
            maker.add(Level.L5, f"products_{word}", maker.ragged, knobs=knobs)
        deep = {first: "all_positive", **dict.fromkeys(rest, "all_negative")}
        maker.add(Level.L5, "products_low", maker.ragged, knobs={ZONE: deep, SCALE: dict.fromkeys(deep, _DEEP)})


def floating_of_many_rows(sources: Sources) -> list[str]:
    """Return the floating tensors of two axes or more, of the first few."""
    return _of_many_rows(sources, sources.floating[:_MOST_TENSORS])


def _of_many_rows(sources: Sources, names: Collection[str]) -> list[str]:
    """Return those of some tensors that have two axes or more."""
    return [port.name for port in sources.tensors if port.name in names and len(port.shape) > 1]


def alike(maker: Maker) -> None:
    """Add cases in which every second row of a tensor is that of another: a student that has learnt all from its teacher.

    What a kernel divides by, or takes a root of, is 0 in such rows; where it expands a square of a difference, noise.
    """
    dtypes = maker.sources.spec.supported_dtypes
    for number, (name, other) in enumerate(maker.sources.alike[:_MOST_PAIRS]):
        dtype = dtypes[number % len(dtypes)]  # named, so that no other case changes its own
        # Small ones too: a root's floor of 1e-6, and what is 0, drown in large neighbours.
        for word, knobs in (("", {}), ("_tiny", {ZONE: tiny(maker.sources)})) if name in maker.sources.floating else (("", {}),):
            maker.add(Level.L5, f"alike_{name}_{other}{word}", maker.ragged, dtype=dtype, knobs={ALIKE: {name: other}, **knobs})


def masked(maker: Maker) -> None:
    """Add masks that leave out whole tiles, and a row: of flags that are drawn one by one every tile has some of both kinds."""
    for name in maker.sources.masks[:_MOST_TENSORS]:
        maker.add(Level.L3, f"runs_{name}", maker.ragged, knobs={ZONE: {name: "runs"}})
        maker.add(Level.L3, f"none_{name}", maker.ragged, knobs={ZONE: {name: "one_row_none"}})


def specials(maker: Maker) -> None:
    """Add the special values that SPEC.md names: NaN and masks of -inf anywhere, the others among its edge cases.

    A row of nothing but -inf comes where SPEC.md says what becomes of it; what it says is finite stays so.
    """
    sources = maker.sources
    text = read_text(sources.ws.spec)
    zones = [zone for zone, legal in (("one_nan", sources.says_nan), ("masked", sources.says_minus_inf)) if legal]
    if "one_nan" in zones and (left_open := special_values.nan_is_open(text)):
        zones.remove("one_nan")
        maker.dropped["L5_one_nan"] = f"SPEC.md leaves open how far a NaN reaches: {left_open[:120]}"
    if "masked" in zones and special_values.says_closed(text):
        zones.append("closed")
    zones += special_values.zones(text)
    finite = {name for name in sources.floating if special_values.is_finite(text, name)}
    partly = special_values.nan_ruled_out(text, sources.floating) if "one_nan" in zones else {}
    for name, why in partly.items():
        # Further calls of a verdict plant NaN where the golden reads nothing; a drawn one may lie in what counts.
        maker.dropped[f"L5_one_nan_{name}"] = f"SPEC.md rules NaN out: {why[:120]}"
    for zone in zones:
        ruled_out = (finite if zone in _INFINITE else set()) | (set(partly) if zone == "one_nan" else set())
        legal = [name for name in sources.floating if name not in ruled_out and _takes(sources, name, zone)]
        for number, name in enumerate(legal[:_MOST_TENSORS]):
            # The first in each dtype: what a kernel does for 16 bits only may lose a NaN there only.
            for dtype in sources.spec.supported_dtypes if number == 0 else ("",):
                maker.add(Level.L5, f"{zone}_{name}", maker.ragged, dtype=dtype, knobs={ZONE: {name: zone}})
            if zone == "closed":  # a finite number, however low, closes nothing: a kernel may know -10000 or -1e9 as "closed"
                wide = widest(sources)
                knobs = {ZONE: {name: "low"}, SCALE: {name: _LOW_OF_16_BITS if wide == "float16" else _LOW}}
                maker.add(Level.L5, f"open_{name}", maker.ragged, dtype=wide, knobs=knobs)
            # One NaN may lie where no index points, or among what counts: rows behind a length are read, too.
            if zone == "one_nan" and sources.is_indexed:
                maker.add(Level.L5, f"some_nan_{name}", maker.ragged, knobs={ZONE: {name: "some_nan"}})
            # A product with a mask keeps a NaN that is left out, and a choice by it does not.
            for word in ("all", "none") if number == 0 and sources.masks and zone.startswith("one_") else ():
                beside = dict.fromkeys(sources.masks, word)
                maker.add(Level.L5, f"{zone}_{name}_{word}", maker.ragged, knobs={ZONE: {name: zone, **beside}})


def _takes(sources: Sources, name: str, zone: str) -> bool:
    """Whether a tensor's range leaves room for an infinity; a row that has a length, or a sum, does not."""
    kept = ranges.of(sources.spec.shape_constraints, name)
    if sources.spec.rows.get(name, Rows()).measure and zone in _UNMEASURED:
        return False
    ends = dict.fromkeys(("masked", "closed"), kept.low == -math.inf)
    ends |= {"one_inf": kept.high == math.inf, "largest": kept == ranges.Range()}
    return ends.get(zone, True)


def varied_floats(case: Case, scalars: Mapping[str, Any]) -> dict[str, float]:
    """Return the float scalars of which a case has other values, with their defaults."""
    return {name: value for name, value in scalars.items() if isinstance(value, float) and case.get(name, value) != value}


def zones(maker: Maker, level: Level) -> None:
    """Add the zones of one level, for all floating tensors at once."""
    if not maker.sources.floating:
        return
    for at, word, knobs in ZONES:
        # Huge numbers in each dtype: what overflows in one does not in another, and kernels cast before they overflow.
        for dtype in maker.sources.spec.supported_dtypes if word == "huge" else ("",):
            if at is level:
                told = {ZONE: tiny(maker.sources)} if word == "tiny" else knobs
                maker.add(level, word, maker.ragged, dtype=dtype, knobs=told)


def tiny(sources: Sources) -> str | dict[str, str]:
    """Return the zone of small numbers, for all tensors but those that the golden mixes by.

    A share next to 0 keeps what is taken away again: `y + (1 - k) * (x - y)` loses there what `k * y + (1 - k) * x` keeps.
    """
    others = [name for name in sources.floating if name not in sources.shares]
    return "tiny" if len(others) == len(sources.floating) or not others else dict.fromkeys(others, "tiny")


def beyond_half(maker: Maker) -> None:
    """Add bfloat16 numbers beyond float16: a kernel may go by way of float16, which keeps all 8 bits."""
    sources = maker.sources
    for name in _of_many_rows(sources, sources.floating)[:_MOST_TENSORS] if "bfloat16" in sources.spec.supported_dtypes else ():
        if ranges.of(sources.spec.shape_constraints, name).high >= _WIDEST * _BEYOND_HALF and name in sources.following:
            knobs = {SCALE: {name: _BEYOND_HALF}}
            maker.add(Level.L5, f"beyond_half_{name}", maker.ragged, dtype="bfloat16", knobs=knobs)


def widest(sources: Sources) -> str:
    """Return the widest floating dtype that the operator takes; "" where it takes none."""
    return next((word for word in FLOATS if word in sources.spec.supported_dtypes), "")


def cancellation(maker: Maker) -> None:
    """Add a case per subtraction of the golden and one for its worst sum; the rehearsal searches for their recipes.

    In the widest dtype: there what is lost is lost by the kernel, not by the inputs' own rounding.
    """
    sources = maker.sources
    target = sources.interfaces.final_outputs[0].name
    expressions = [found.expression for found in sources.scan.subtractions] + [WORST_SUM]
    for number, written in enumerate(expressions if sources.floating else []):
        stress = {"target": target, "expression": written, "relative_gap": RELATIVE_GAP, "seed": SEED}
        maker.add(
            Level.L5,
            f"cancellation_stress_{number}",
            maker.small_ragged,
            dtype=widest(sources),
            knobs={"cancellation_stress": stress, SEARCHED: maker.searched},
        )
