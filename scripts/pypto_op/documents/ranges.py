"""SPEC.md's `input_ranges`: between which values an input lies, `"[0, 1)"` or `[0, 1]`; `shape_constraints` may say it too.

Where something is said of rows as well (`documents.rows`), the interval stands under `values`. A range is read into
comparisons, the form of `shape_constraints`, so that one reader (`constraints`) serves both.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pypto_op.documents import constraints
from pypto_op.documents.schema import Finding
from pypto_op.python_text import NoNumber, evaluate, expression

_INTERVAL = re.compile(r"\s*([\[(])([^,\[\]]+),([^,\[\]]+)([\])])\s*")
Ends = tuple[float, float, bool, bool]
"""Least, greatest, and whether each is itself outside: how `stress.patterns.within` takes a range."""

Written = str | Sequence[float] | Mapping[str, Any]
"""What SPEC.md says of one input: an interval, or a mapping with `values` and what holds for rows."""

_ENDLESS = {"inf", "+inf", "-inf", ".inf", "-.inf", "+.inf"}


@dataclass(frozen=True)
class Range:
    """Between which values an input lies."""

    # low, high: the ends; -inf and inf where there is none
    low: float = -math.inf
    high: float = math.inf
    # open_low, open_high: the end itself is no legal value
    open_low: bool = False
    open_high: bool = False

    @property
    def ends(self) -> Ends:
        """The range as a plain tuple."""
        return self.low, self.high, self.open_low, self.open_high

    def holds(self, value: float) -> bool:
        """Whether a number lies in it; NaN does in none."""
        above = value > self.low if self.open_low else value >= self.low
        return above and (value < self.high if self.open_high else value <= self.high)

    def left_by(self, value: Any) -> bool:
        """Whether a float, or an element of a floating tensor, lies outside; NaN, and what is no such value, never does."""
        if self == Range() or not (isinstance(value, float) or getattr(value, "is_floating_point", bool)()):
            return False
        # Beside 16 bits torch rounds an end to them: 9984, the bfloat16 below an open end of 10000, is no 10000.
        wide = value if isinstance(value, float) or value.element_size() > 2 else value.float()
        low = wide <= self.low if self.open_low and self.low > -math.inf else value < self.low
        high = wide >= self.high if self.open_high and self.high < math.inf else value > self.high
        outside = low | high
        return bool(outside if isinstance(outside, bool) else outside.any())

    def __str__(self) -> str:
        return f"{'(' if self.open_low else '['}{self.low:g}, {self.high:g}{')' if self.open_high else ']'}"


def comparisons(ranges: Mapping[str, Written]) -> list[str]:
    """Return `input_ranges` as comparisons: `{"x": "[0, C)"}` gives `0 <= x` and `x < C`.

    Args:
        ranges: as SPEC.md has it; `findings` says what is wrong with it.
    """
    said: list[str] = []
    for name, written in _intervals(ranges):
        low, high, open_low, open_high = _ends(written) or ("", "", False, False)
        said += [f"{low} {'<' if open_low else '<='} {name}"] if low else []
        said += [f"{name} {'<' if open_high else '<='} {high}"] if high else []
    return said


def interval(written: str | Sequence[float]) -> Range | None:
    """Return an interval of numbers; None for what is none, or names a size."""
    ends = _ends(written)
    if ends is None:
        return None
    low, high = (_number(end) for end in ends[:2])
    if (ends[0] and low is None) or (ends[1] and high is None):
        return None
    return Range(-math.inf if low is None else low, math.inf if high is None else high, ends[2], ends[3])


def is_endless(written: Written) -> bool:
    """Whether it is an interval that has no end, `"(-inf, inf)"`: it gives no comparison, and says all the same what is legal."""
    ends = [_ends(said) for _, said in _intervals({"": written})]
    return any(found is not None and found[:2] == ("", "") for found in ends)


def findings(ranges: Mapping[str, Written]) -> Iterator[Finding]:
    """Yield what is wrong with the intervals of `input_ranges`: none, or an empty one."""
    for name, written in _intervals(ranges):
        place = f"input_ranges.{name}" + (".values" if isinstance(ranges[name], Mapping) else "")
        ends = _ends(written)
        if ends is None:
            yield Finding(place, f'{written!r} is no range; write "[0, 1)", "(0, inf)" or "[0, C)"')
            continue
        low, high = (_number(end) for end in ends[:2])
        if low is not None and high is not None and (low > high or (low == high and (ends[2] or ends[3]))):
            yield Finding(place, f"{written!r} holds no value")


def of(said: Iterable[str], name: str, sizes: Mapping[str, int] | None = None) -> Range:
    """Return the range that comparisons give a floating input; ends that are no numbers for these sizes count as none.

    Args:
        said: `Spec.shape_constraints`, which hold `input_ranges` too.
    """
    low, high = (-math.inf, False), (math.inf, False)
    for op, side in constraints.about(said, {name}):
        # A greater end that is as great binds more where it is open: (4, True) after (4, False).
        if (end := _value(side, sizes or {})) is None:
            continue
        if isinstance(op, (ast.Gt, ast.GtE)):
            low = max(low, (end, isinstance(op, ast.Gt)))
        elif isinstance(op, (ast.Lt, ast.LtE)):
            high = min(high, (end, isinstance(op, ast.Lt)), key=lambda one: (one[0], not one[1]))
    return Range(low[0], high[0], low[1], high[1])


def sized_ends(said: Iterable[str], name: str, sizes: Mapping[str, int]) -> tuple[str, str]:
    """Return the ends of a floating input's range that name sizes, as expressions of these: ("", "T - 1"); "" for any other.

    Args:
        said: as of `of`.
        sizes: the symbols that an end may name.
    """
    low = high = ""
    for op, side in constraints.about(said, {name}):
        if _value(side, {}) is not None or _value(side, sizes) is None:
            continue
        if isinstance(op, (ast.Gt, ast.GtE)):
            low = ast.unparse(side)
        elif isinstance(op, (ast.Lt, ast.LtE)):
            high = ast.unparse(side)
    return low, high


def _intervals(ranges: Mapping[str, Written]) -> Iterator[tuple[str, str | Sequence[float]]]:
    """Yield each input with the interval of its values, where there is one."""
    for name, written in ranges.items():
        if not isinstance(written, Mapping):
            yield name, written
        elif "values" in written:
            yield name, written["values"]


def _ends(written: str | Sequence[float]) -> tuple[str, str, bool, bool] | None:
    """Return low, high ("" for none), and whether each is open; None for what is no range."""
    if not isinstance(written, str):
        written = f"[{written[0]}, {written[1]}]" if len(written) == 2 else ""
    found = _INTERVAL.fullmatch(written)
    if found is None:
        return None
    low, high = (end.strip() for end in (found[2], found[3]))
    if expression(low) is None or expression(high) is None:
        return None
    return ("" if low in _ENDLESS else low), ("" if high in _ENDLESS else high), found[1] == "(", found[4] == ")"


def _number(text: str) -> float | None:
    tree = expression(text) if text else None
    return None if tree is None else _value(tree, {})


def _value(node: ast.expr, sizes: Mapping[str, int]) -> float | None:
    """Return the number that an end is, None for what is none."""
    try:
        return float(evaluate(node, sizes, _ARITHMETIC, (int, float)))
    except (NoNumber, OverflowError):
        return None


_ARITHMETIC: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
