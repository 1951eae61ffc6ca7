"""Whole numbers that are all the same: all tokens to one expert, a table of one page, padding alone, counts at 0.

Of numbers that are drawn evenly a tile never has sixteen alike, and of a million none is next to 0: there a counter of four
bits, a place that is written twice in a step, or a branch for "nothing so far" is never met.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Mapping

from pypto_op.documents import constraints
from pypto_op.documents.axes import INDICES, symbols_of
from pypto_op.documents.knobs import RANGE, ZONE
from pypto_op.documents.rows import Rows
from pypto_op.generators.cases.case_maker import Maker
from pypto_op.generators.operator.sources import Sources
from pypto_op.python_text import expression
from pypto_op.vocabulary import Level

_MOST_TENSORS = 3
_OVERFLOW, _BEYOND = 1 << 31, 1.05
"""Where 32 bits with a sign end, and how far a sum goes beyond: a total that is held there is off by more than rounding."""
_MOST_TILES = 300
"""Of an axis on which such a sum is reached; a simulator takes two seconds for as many."""
_WIDE = 1024
"""Of a range of more numbers than that hardly one of those drawn evenly is as small as an axis."""


def add(maker: Maker) -> None:
    """Add a case for each tensor of whole numbers in which all are one, and one in which all are what the golden sets apart."""
    dtypes = maker.sources.spec.supported_dtypes  # named, so that no other case changes its own
    for name in _free(maker.sources)[:_MOST_TENSORS]:
        for turn, (word, number) in enumerate(_numbers(maker.sources, name, maker.ragged)):
            knobs = {RANGE: {name: [number, number + 1]}}
            maker.add(Level.L3, f"{name}_{word}", maker.ragged, dtype=dtypes[turn % len(dtypes)], knobs=knobs)
    for turn, name in enumerate(counts(maker.sources)[:_MOST_TENSORS]):
        _next_to_none(maker, name, dtypes[turn % len(dtypes)])
    for name in _of_distinct(maker.sources)[:_MOST_TENSORS]:
        knobs = {RANGE: {name: _last(maker.sources, name, maker.ragged)}}
        if knobs[RANGE][name]:
            maker.add(Level.L3, f"{name}_rows_alike", maker.ragged, dtype=dtypes[0], knobs=knobs)


def _next_to_none(maker: Maker, name: str, dtype: str) -> None:
    """Add counts that are all 1, and one alone that is: a variance of one sample is divided by the samples less one.

    Such a count may be taken for none, too. A tensor without a dynamic axis has no shape in which one stands alone.
    """
    port = next(port for port in maker.sources.tensors if port.name == name)
    alone = maker.sources.fitted(maker.base, dict.fromkeys(sorted(symbols_of(port) & set(maker.dynamic)), 1))
    shapes = [("all_1", maker.ragged)] + [("alone_1", alone)] * (math.prod(port.sizes(alone)) == 1)
    for word, sizes in shapes:
        maker.add(Level.L3, f"{name}_{word}", sizes, dtype=dtype, knobs={RANGE: {name: [1, 2]}})


def long(maker: Maker) -> None:
    """Add the former on the longest row of each long axis that has such numbers: there one takes more than a tile of them."""
    dtype = maker.sources.spec.supported_dtypes[-1]
    for axis in maker.long:
        longest = max((case["shape"] for case in maker.cases if case["precision"]), key=lambda shape: shape[axis])
        along = {port.name for port in maker.sources.tensors if axis in symbols_of(port)}
        for name in (name for name in _free(maker.sources)[:_MOST_TENSORS] if name in along):
            for word, number in list(_numbers(maker.sources, name, longest))[:1]:
                knobs = {RANGE: {name: [number, number + 1]}}
                maker.add(Level.L4, f"{name}_{word}_along_{axis}", longest, dtype=dtype, knobs=knobs)
        for name in (name for name in _of_distinct(maker.sources)[:_MOST_TENSORS] if name in along):
            # Beside flags that choose all: what counts the rows that name one number reaches the length of the axis.
            flags = {ZONE: dict.fromkeys(maker.sources.masks, "all")} if maker.sources.masks else {}
            if last := _last(maker.sources, name, longest):
                maker.add(Level.L4, f"{name}_rows_alike_along_{axis}", longest, dtype=dtype, knobs={RANGE: {name: last}, **flags})


def beyond_32_bits(maker: Maker) -> None:
    """Add counts at their greatest on an axis so long that their sum leaves 32 bits, where SPEC.md allows as many.

    A kernel that adds whole numbers before it casts them is right on every shorter axis. The other axes are as small as may be.
    """
    for name in counts(maker.sources)[:_MOST_TENSORS]:
        greatest = (_value(maker.sources.ranges[name][1], {}) or 1) - 1
        port = next(port for port in maker.sources.tensors if port.name == name)
        for axis in (axis for axis in maker.dynamic if axis in symbols_of(port)):
            size = math.ceil(_BEYOND * _OVERFLOW / greatest)
            if size > _MOST_TILES * maker.sources.steps_along(axis)[0]:
                continue
            few = {**dict.fromkeys((*maker.fixed, *maker.varied, *maker.dynamic), 1), axis: size}
            sizes = maker.fitted(few, up=True)
            if sizes[axis] >= size:
                knobs = {RANGE: {name: [greatest, greatest + 1]}}
                maker.add(
                    Level.L4,
                    f"{name}_all_greatest_along_{axis}",
                    sizes,
                    dtype=maker.sources.spec.supported_dtypes[0],
                    knobs=knobs,
                )


def counts(sources: Sources) -> list[str]:
    """Return the tensors whose range begins at 0, ends at a number and holds more than flags do: labels or counts."""
    return [
        name
        for name in _free(sources)
        if _value(sources.ranges[name][0], {}) == 0 and (_value(sources.ranges[name][1], {}) or 0) > 2
    ]


def wide(ranges: Mapping[str, tuple[str, str]]) -> list[str]:
    """Return the tensors of `ranges` (`Sources.ranges`) of which half are drawn by order of magnitude: counts up to a million.

    None whose range ends at a size: such a number is a place, and far ones tell more.
    """
    ends = {name: [_value(end, {}) for end in both] for name, both in ranges.items()}
    return [name for name, (low, high) in ends.items() if low is not None and high is not None and high - low > _WIDE]


def _free(sources: Sources) -> list[str]:
    """Return the tensors of indices, counts or lengths; no masks, which have cases of their own, and no borders in order."""
    names = [port.name for port in sources.tensors if port.dtype in INDICES and port.name in sources.ranges]
    taken = {*sources.masks, *sources.spec.rows, *sources.spec.fixed_inputs}
    return [name for name in names if name not in taken]


def _of_distinct(sources: Sources) -> list[str]:
    """Return the tensors of several rows of which none names a number twice, and of which nothing else is said."""
    several = {port.name for port in sources.tensors if port.dtype in INDICES and len(port.shape) > 1}
    return [name for name, said in sources.spec.rows.items() if name in several and said == Rows(distinct=True)]


def _last(sources: Sources, name: str, sizes: Mapping[str, int]) -> list[int]:
    """Return the range of as many last numbers as a row has places, so that all rows name the same ones; [] where none is."""
    width = next(port.sizes(sizes)[-1] for port in sources.tensors if port.name == name)
    low, high = (_value(end, sizes) for end in sources.ranges.get(name, ("", "")))
    return [high - width, high] if low is not None and high is not None and width and high - width > max(low, 0) else []


def _numbers(sources: Sources, name: str, sizes: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """Yield a word and a number that all may be: the last place of what is pointed into, else the least; what is set apart."""
    low, high = (_value(end, sizes) for end in sources.ranges[name])
    if low is None or high is None or high - low < 2:
        return
    least = min(max(low, 0), high - 1)
    numeric = all(_value(end, {}) is not None for end in sources.ranges[name])
    yield ("all_least", least) if numeric else ("all_one", high - 1)
    for number in sources.apart.get(name, ()):
        if isinstance(number, int) and low <= number < high and number != least:
            yield "all_apart", number


def _value(end: str, sizes: Mapping[str, int]) -> int | None:
    return constraints.value_of(expression(end) or ast.Constant(""), sizes)
