"""Other values of the whole numbers among an operator's inputs: windows, strides, lags, a number of steps."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pypto_op.documents import constraints, golden_scan
from pypto_op.documents.axes import symbols_of
from pypto_op.documents.knobs import ZONE
from pypto_op.generators.cases import float_scalars
from pypto_op.generators.cases.walks import REST
from pypto_op.generators.operator.sources import INTEGERS, Sizes, Sources
from pypto_op.vocabulary import Level

if TYPE_CHECKING:
    from pypto_op.generators.cases.case_maker import Case, Maker

_LEAST_PAST, _MOST_PAST = 8, 512
"""Of the numbers that rows are made longer than: an attention holds the square of a row."""
MOST_WHOLE = 1 << 20
"""The greatest value of a whole number that a case has: the golden may loop over it."""
_FEW_PLACES = 16
"""An axis that ends there counts taps, heads or experts; what is wider is a width."""
_FAR_NUMBER, _FAR_ROW = 1089, 1155
"""A window of more than 1024, and a row that is longer by more than a tile."""
_FAR = 1000
"""Stands for the greatest value where SPEC.md names the least alone."""


def add(maker: Maker, name: str) -> None:
    """Add cases with other values of a scalar, where it is a whole number with a default that no tensor is compared with.

    At the ends of its range and between; where an end is legal beside another value of another number only, beside that one;
    and at the greatest one where an axis is no longer than that: a window as long as the row, a correction as large as the count.
    """
    sources = maker.sources
    port = next(port for port in sources.interfaces.primary_inputs if port.name == name)
    default = sources.scalars.get(name)
    told_apart = any(name in numbers for numbers in sources.apart.values())
    if port.dtype not in INTEGERS or not isinstance(default, int) or name in maker.base or told_apart:
        return
    for number, sizes in _with_shapes(maker, name, default).items():
        maker.add(Level.L3, f"{name}_{number}", sizes, knobs={name: number})
    for number, sizes, beside in _beside_another(maker, name):
        maker.add(Level.L3, f"{name}_{number}_beside", sizes, knobs={**beside, name: number})
    for number in whole_ends(sources, name, maker.ragged)[:1]:
        for axis in maker.long:
            sizes = sources.fitted(maker.base, {axis: number})
            if sizes[axis] == number and _legal(sources, {**sizes, name: number}):
                maker.add(Level.L3, f"{axis}_as_{name}", sizes, knobs={name: number})


def together(maker: Maker) -> None:
    """Add cases in which several whole numbers have other values at once: a window of 1 without sinks.

    All at their least, on the base shape and on the ragged one, and each at its greatest beside the others' least.
    """
    ends = {name: found for name in free(maker) if (found := whole_ends(maker.sources, name, maker.ragged))}
    if len(ends) < 2:
        return
    least = {name: found[-1] for name, found in ends.items()}
    for sizes in (maker.base, maker.ragged):
        _add_legal(maker, Level.L3, "all_least", sizes, least)
    for name, found in ends.items():
        _add_legal(maker, Level.L3, f"{name}_{found[0]}_alone", maker.ragged, {**least, name: found[0]})


def few_at_ends(maker: Maker) -> None:
    """Add each whole number at its least and one above beside the ends of all float scalars.

    What an eps does in each step of an iteration is gone once that has converged, and at the first step it may not be there yet;
    the branch of step 0 may forget a decay.
    """
    usual = float_scalars.scalars(maker)
    floats = {name: found[-1] for name, scalar in usual.items() if (found := scalar.ends())}
    for name in free(maker) if floats else ():
        few = _few(maker.sources, name, maker.ragged)
        for number in (*few, *(one - 1 for one in few)):
            knobs: dict[str, Any] = {**floats, name: number}
            if number != maker.sources.scalars[name] and _legal(maker.sources, {**maker.ragged, **knobs}):
                dtypes = maker.sources.spec.supported_dtypes  # named, so that no other case changes its own
                maker.add(Level.L3, f"{name}_{number}_at_ends", maker.ragged, dtype=dtypes[0], knobs=knobs)


def along(maker: Maker) -> None:
    """Add each whole number as nine tenths of the longest axis, and as more than all of it, on rows of that length.

    A bound of a window shows on no shorter row. What says how many outputs there are is far below the row's length, too: a bound
    on the rows that a tile reads shows where few outputs come of many.
    """
    sources = maker.sources
    for axis in maker.long:
        longest = max((case["shape"] for case in maker.cases if case["precision"]), key=lambda shape: shape[axis])
        for name in free(maker):
            number = longest[axis] * 9 // 10
            kept = constraints.whole_ends(sources.spec.shape_constraints, name, longest)
            if kept is not None and (kept[0] is not None or sources.whole_numbers[name] >= _LEAST_PAST):
                _add_legal(maker, Level.L4, f"{name}_{number}_along_{axis}", longest, {name: number})
                _add_legal(maker, Level.L4, f"{name}_beyond_{axis}", longest, {name: longest[axis] + REST})
        for name in _of_outputs(maker):
            for number in whole_ends(sources, name, longest)[1:-1]:
                dtype = sources.spec.supported_dtypes[0]  # named, so that no other case changes its own
                maker.add(Level.L4, f"{name}_{number}_along_{axis}", longest, dtype=dtype, knobs={name: number})


def beside(maker: Maker, position: Mapping[str, int]) -> Iterator[tuple[str, dict[str, int]]]:
    """Yield a word and the whole numbers beside a switch in some position: all at their least, all at their greatest.

    Those that are not legal together come one by one. `(size - 1)` is 0 where the switch and the least size meet.

    Args:
        maker: of the suite.
        position: the switch and its value.
    """
    ends = {
        name: found for name in free(maker) if name not in position and (found := whole_ends(maker.sources, name, maker.ragged))
    }
    for word, place in (("least", -1), ("greatest", 0)):
        whole = {name: found[place] for name, found in ends.items()}
        if whole and _legal(maker.sources, {**maker.ragged, **position, **whole}):
            yield word, whole
            continue
        for name, number in whole.items():
            if _legal(maker.sources, {**maker.ragged, **position, name: number}):
                yield f"{name}_{number}", {name: number}


def beside_axes(maker: Maker) -> None:
    """Add fixed axes of a few places, such as taps, at both ends beside whole numbers there, each flag in either position.

    How far a convolution reaches is the product of taps and dilation: a halo of a tile holds each alone. An even number of taps
    has another middle, which shows without `causal` only.
    """
    few = {axis for axis, word, size in maker.named_ends if word == "greatest" and size <= _FEW_PLACES}
    flags = [{name: not default} for name, default in maker.sources.scalars.items() if isinstance(default, bool)]
    dtypes = maker.sources.spec.supported_dtypes  # named, so that no other case changes its own
    for word, place, positions in (("least", -1, flags), ("greatest", 0, [{}, *flags])):
        wanted = {axis: size for axis, end, size in maker.named_ends if end == word and axis in few}
        sizes = maker.sources.fitted(maker.ragged, wanted)
        ends = {name: found[place] for name in free(maker) if (found := whole_ends(maker.sources, name, sizes))}
        for flag in positions if wanted and ends else ():
            name = "_".join([*(f"{one}_{value}" for one, value in flag.items()), "axes", word]).lower()
            _add_legal(maker, Level.L3, name, sizes, {**ends, **flag}, dtypes[0])


def far(maker: Maker) -> None:
    """Add rows of more than 1024 with each whole number between that and their length: room for 1024 shows on no others.

    Of the other axes as little as SPEC.md allows, since an attention walks the square of such a row.
    """
    sources = maker.sources
    fewest = dict.fromkeys((*maker.fixed, *maker.varied, *(axis for axis in maker.dynamic if axis not in sources.pools)), 1)
    for axis in maker.long:
        sizes = sources.fitted(maker.base, {**fewest, axis: _FAR_ROW}, up=True)
        for name in free(maker) if sizes[axis] >= _FAR_ROW else ():
            if sources.whole_numbers[name] >= _LEAST_PAST or constraints.mentioned(sources.spec.shape_constraints, name):
                _add_legal(maker, Level.L4, f"{name}_{_FAR_NUMBER}_far_{axis}", sizes, {name: _FAR_NUMBER})


def past(maker: Maker) -> None:
    """Add rows more than twice as long as a number that the golden compares with, or a whole number's default, where none is.

    A window of 512 is one of 256 in every shorter row. A bias that grows with the distance hides what lies so far away; so the
    tensors of one axis are tiny in a second case.
    """
    sources = maker.sources
    compared = golden_scan.compared_numbers(sources.ws.golden, sources.ws.golden_name())
    usual = {sources.whole_numbers[name] for name in free(maker)}
    numbers = sorted(number for number in compared | usual if _LEAST_PAST <= number <= _MOST_PAST)
    flat = [port.name for port in sources.tensors if port.name in sources.floating and len(port.shape) == 1]
    for axis in maker.long:
        for number in numbers:
            sizes = sources.fitted(maker.base, {axis: 2 * number + REST}, up=True)
            if not any(case["precision"] and case["shape"][axis] >= sizes[axis] for case in maker.cases):
                maker.add(Level.L4, f"{axis}_past_{number}", sizes)
            if flat:
                maker.add(Level.L4, f"{axis}_past_{number}_near", sizes, knobs={ZONE: dict.fromkeys(flat, "tiny")})


def free(maker: Maker) -> list[str]:
    """Return the whole numbers whose other values are tried (`add`)."""
    sources, compared = maker.sources, {number for numbers in maker.sources.apart.values() for number in numbers}
    return [name for name in sources.whole_numbers if name not in maker.base and name not in compared]


def _of_outputs(maker: Maker) -> list[str]:
    """Return the whole numbers that sizes of the module's outputs name: a target length, a stride."""
    outputs = [port for module in maker.sources.interfaces.modules for port in module.outputs]
    named = set().union(*(symbols_of(port) for port in outputs))
    return [name for name in free(maker) if name in named]


def _add_legal(maker: Maker, level: Level, word: str, sizes: Sizes, knobs: Mapping[str, int], dtype: str = "") -> None:
    changed = {name: value for name, value in knobs.items() if value != maker.sources.scalars.get(name)}
    if changed and _legal(maker.sources, {**sizes, **knobs}):
        maker.add(level, word, sizes, dtype=dtype, knobs=changed)


def _with_shapes(maker: Maker, name: str, default: int) -> dict[int, Sizes]:
    """Return other values of a whole number, the most telling first, each with a shape on which it is legal.

    On the ragged one where that has room; else, and for a greater value than that one allows, on the first P0 shape that does.
    """
    sources, found = maker.sources, dict[int, Sizes]()
    for sizes in (maker.ragged, *maker.p0):
        ends = whole_ends(sources, name, sizes)
        found |= {number: sizes for number in ends if sizes is maker.ragged or number > max(found, default=number - 1)}
    for number in _usual(sources, name, default):
        for sizes in (maker.ragged, *maker.p0):
            if number not in found and _legal(sources, {**sizes, name: number}):
                found[number] = sizes
    return found


def whole_ends(sources: Sources, name: str, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """Return the greatest value that SPEC.md gives a whole number, one between, and the least; no default, nothing for no range.

    A kernel may have room for so many, or know small values only. Between: at the geometric mean, since what a count of steps
    or a window does wrong shows at some order of magnitude, and may show no more at the greatest.

    Args:
        sources: what is known of the operator.
        name: of the scalar.
        sizes: of the case, which the ends may name; other whole numbers have their defaults, or what stands there.
    """
    return tuple(value for value in _wanted(sources, name, sizes) if _legal(sources, {**sizes, name: value}))


def stays(sources: Sources, case: Case, name: str) -> bool:
    """Whether a case stays however many values its whole number has: one of its `whole_ends`, few, or long (`along`, `past`)."""
    if case["level"] == str(Level.L4):
        return True
    others = {other: case[other] for other in sources.whole_numbers if other in case and other != name}
    sizes = {**case["shape"], **others}
    return case[name] in (*whole_ends(sources, name, sizes), *_few(sources, name, sizes))


def varied_integer(case: Case, scalars: Mapping[str, Any]) -> str:
    """Return the name of the whole number of which a case has another value than the default; "" where there is none."""
    names = (name for name, default in scalars.items() if type(default) is int and case.get(name, default) != default)
    return next(names, "")


def _wanted(sources: Sources, name: str, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """Return the ends, and one between, whether they are legal beside the other numbers or not."""
    said = sources.spec.shape_constraints
    least, greatest = constraints.whole_ends(said, name, {**sources.whole_numbers, **sizes}) or (None, None)
    if least is None or not constraints.mentioned(said, name):
        return ()
    top = _FAR if greatest is None else greatest
    between = round(math.sqrt(top * max(least, 1))) if least >= 0 else (least + top) // 2
    if 2 <= between < top and _legal(sources, {**sizes, name: between | 1}):
        between |= 1  # a kernel may halve a window, or round it to tiles
    ends = (min(top, MOST_WHOLE), between, least)
    return tuple(value for value in dict.fromkeys(ends) if value != sources.scalars.get(name))


def _few(sources: Sources, name: str, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """Return what comes next to the least value that SPEC.md gives a whole number; nothing where it names no least one."""
    said = sources.spec.shape_constraints
    least, _ = constraints.whole_ends(said, name, {**sources.whole_numbers, **sizes}) or (None, None)
    return () if least is None or not constraints.mentioned(said, name) else (least + 1,)


def _legal(sources: Sources, known: Mapping[str, Any]) -> bool:
    return constraints.satisfied(sources.spec.shape_constraints, {**sources.whole_numbers, **known})


def _usual(sources: Sources, name: str, default: int) -> Iterator[int]:
    """Yield other values of a whole number, legal or not; of them the rehearsal keeps those that the golden minds.

    Where SPEC.md's constraints say nothing about it, its sign stays, but that a negative one may stand for "none".
    """
    any_sign = default < 0 or constraints.mentioned(sources.spec.shape_constraints, name)
    for value in dict.fromkeys((-default, 2 * default, default + 1, 1, 7, default - 1, 0)):
        if (any_sign or value > 0) and value != default:
            yield value


def _beside_another(maker: Maker, name: str) -> Iterator[tuple[int, Sizes, dict[str, int]]]:
    """Yield the ends that the others' defaults rule out, each with a shape and a value of another number that allow it: the pad
    of 2 that a window of 3 has no room for."""
    sources, known = maker.sources, set[int]()
    for sizes in (maker.ragged, *maker.p0):
        others = [(other, value) for other in sources.whole_numbers if other != name for value in _wanted(sources, other, sizes)]
        for number in _wanted(sources, name, sizes):
            beside = [{other: value} for other, value in others if _legal(sources, {**sizes, other: value, name: number})]
            if beside and number not in known and not _legal(sources, {**sizes, name: number}):
                known.add(number)
                yield number, sizes, beside[0]
