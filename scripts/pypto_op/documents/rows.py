"""What SPEC.md's `input_ranges` says beside an interval: `k: {row_length: 1}`, `p: {row_sum: 1}`, `mask: {one_of: [0, 1]}`,
`slot: {distinct: true}`.

A row is what lies along an input's last axis. Some operators are defined, or have bounded gradients, only where keys are
normalised, weights add up to 1, or decays were summed up; no interval of single values can say so. Nor can it say that a
floating mask holds 0 and 1, or a ternary weight -1, 0 and 1, and nothing between.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pypto_op.documents import ranges
from pypto_op.documents.ranges import Range, Written
from pypto_op.documents.schema import Finding
from pypto_op.errors import ContractError

if TYPE_CHECKING:
    from pypto_op.documents.ports import Port

_MEASURES = {"row_length": "length", "row_sum": "sum"}
_ORDER = "row_order"
_ONE_OF = "one_of"
_DISTINCT = "distinct"
_FLOATS = frozenset({"float32", "float16", "bfloat16"})
_SLACK = 4.0
"""Units in the last place, relative to its end, by which rounding may take a length or a sum beyond it."""


@dataclass(frozen=True)
class Rows:
    """What is said of the rows of one input, or of its elements beyond an interval."""

    measure: str = ""  # "length" (Euclidean), "sum", or "" where neither is said
    kept: Range = Range()  # between which values the measure lies
    order: str = ""  # "rising" or "falling" (equal neighbours are both), or ""
    one_of: tuple[float, ...] = ()  # the numbers that elements may be; empty where nothing is said
    distinct: bool = False  # no whole number stands twice in a row, but for negative ones, which name nothing

    @property
    def plain(self) -> dict[str, Any]:
        """The same as data: how `stress.patterns.within` takes it."""
        if self.one_of:
            return {_ONE_OF: self.one_of}
        return {
            **({self.measure: self.kept.ends} if self.measure else {}),
            **({"order": self.order} if self.order else {}),
            **({_DISTINCT: True} if self.distinct else {}),
        }

    def within(self, other: Rows) -> Rows | None:
        """Return both together; None where they say different things."""
        if self == Rows() or other == Rows():
            return self if other == Rows() else other
        if replace(self, kept=Range()) != replace(other, kept=Range()):
            return None
        low = max(self.kept, other.kept, key=lambda one: (one.low, one.open_low))
        high = min(self.kept, other.kept, key=lambda one: (one.high, not one.open_high))
        return replace(self, kept=Range(low.low, high.high, low.open_low, high.open_high)) if low.low <= high.high else None

    @property
    def may_be_zero(self) -> bool:
        """Whether a row of zeros is legal."""
        return not self.measure or self.kept.holds(0.0)

    @property
    def is_fixed(self) -> bool:
        """Whether every row measures the same."""
        return bool(self.measure) and self.kept.low == self.kept.high

    def left_by(self, value: Any) -> str:
        """Return what the rows of a tensor break, in words; "" for nothing, and for what is no tensor. NaN stands for itself."""
        if not getattr(value, "shape", ()) or not value.numel():
            return ""
        if self.one_of and value.is_floating_point() and self._is_other(value):
            return f"values that are none of {', '.join(f'{number:g}' for number in self.one_of)}"
        if self.order:
            first, after = value[..., :-1], value[..., 1:]
            if bool((after < first if self.order == "rising" else after > first).any()):
                return f"rows that are not {self.order}"
        if self.distinct and self._repeats(value):
            return "numbers that stand twice in a row"
        if self.measure and value.is_floating_point() and self._is_left(value):
            return f"rows whose {self.measure} is not in {self.kept}"
        return ""

    @staticmethod
    def _repeats(value: Any) -> bool:
        """Whether a number from 0 on stands twice in a row: neighbours are alike once the rows are sorted."""
        first, after = (ordered := value.sort(dim=-1).values)[..., :-1], ordered[..., 1:]
        return bool(((first == after) & (first >= 0)).any())

    def _is_other(self, value: Any) -> bool:
        import torch

        known = torch.tensor(self.one_of, dtype=value.dtype, device=value.device)
        return not bool((torch.isin(value, known) | torch.isnan(value)).all())

    def _is_left(self, value: Any) -> bool:
        import torch

        kind, wide = torch.finfo(value.dtype), value.detach().to(torch.float64)
        found = wide.norm(dim=-1) if self.measure == "length" else wide.sum(dim=-1)
        # Each element is rounded, by half a unit in the last place or, near 0, by half the least subnormal number.
        least = value.shape[-1] * kind.tiny * kind.eps
        low, high = (_SLACK * kind.eps * end + least for end in (self.kept.low, self.kept.high))
        return bool(((found < self.kept.low - low) | (found > self.kept.high + high)).any())


def of(input_ranges: Mapping[str, Written]) -> dict[str, Rows]:
    """Return what is said of the rows of each input of which something is; `findings` says what is wrong with it."""
    found: dict[str, Rows] = {}
    for name, written in input_ranges.items():
        if isinstance(written, Mapping):
            key = next((key for key in _MEASURES if key in written), "")
            kept = _interval(written[key]) if key else None
            one_of = tuple(sorted(float(number) for number in written.get(_ONE_OF, ())))
            measure, distinct = _MEASURES[key] if kept else "", written.get(_DISTINCT) is True
            rows = Rows(measure, kept or Range(), str(written.get(_ORDER, "")), one_of, distinct)
            found |= {name: rows} if rows != Rows() else {}
    return found


def of_few_numbers(said: Mapping[str, Rows]) -> dict[str, tuple[float, ...]]:
    """Return the inputs that are `one_of` a few numbers, with these in rising order.

    Args:
        said: as `of` returns it.
    """
    return {name: rows.one_of for name, rows in said.items() if rows.one_of}


def findings(input_ranges: Mapping[str, Written], said: Sequence[str]) -> Iterator[Finding]:
    """Yield what is wrong with what `input_ranges` says of rows.

    Args:
        said: SPEC.md's `shape_constraints`, with what `input_ranges` says of values (`Spec.shape_constraints`).
    """
    for name, written in input_ranges.items():
        if isinstance(written, Mapping) and _ONE_OF in written and len(written) > 1:
            yield Finding(f"input_ranges.{name}", "one_of says all of the values; leave the other keys out")
        measures = [key for key in _MEASURES if isinstance(written, Mapping) and key in written]
        if len(measures) > 1:
            yield Finding(f"input_ranges.{name}", "has a row_length and a row_sum; give one of them")
            continue
        for key in measures:
            assert isinstance(written, Mapping)
            problem = _problem(key, written[key], ranges.of(said, name))
            if problem:
                yield Finding(f"input_ranges.{name}.{key}", problem)


def check_named(
    input_ranges: Mapping[str, Written], default_params: Mapping[str, Any], ports: Sequence[Port], file: Path
) -> None:
    """Refuse a range of what is no input, and rows of what has none: nobody would draw it so, and nobody would check it.

    Args:
        default_params: SPEC.md's scalars, which may have ranges too.

    Raises:
        ContractError: names the input.
    """
    known = {port.name: port for port in ports}
    for name in input_ranges:
        if name not in known and name not in default_params:
            remedy = f"write one of {', '.join([*known, *(extra for extra in default_params if extra not in known)])}"
            raise ContractError(f"{name} is no input", file=file, where=f"input_ranges.{name}", remedy=remedy)
    for name, rows in of(input_ranges).items():
        port, where = known.get(name), f"input_ranges.{name}"
        if port is None or not port.shape or port.dtype == "bool":
            raise ContractError(f"{name} has no rows", file=file, where=where, remedy="give an interval")
        if rows.measure and port.dtype not in _FLOATS:
            problem = f"{name} is {port.dtype}, and row_{rows.measure} is for floating inputs"
            raise ContractError(problem, file=file, where=where, remedy="give an interval, or a row_order")
        if rows.distinct and port.dtype in _FLOATS:
            problem = f"{name} is {port.dtype}, and distinct is for whole numbers"
            raise ContractError(problem, file=file, where=where, remedy="give an interval, or a row_order")
        if rows.one_of and port.dtype not in _FLOATS:
            problem = f"{name} is {port.dtype}, and one_of is for floating inputs"
            raise ContractError(problem, file=file, where=where, remedy=f'write `shape_constraints: ["0 <= {name} <= 1"]`')


def _interval(written: Any) -> Range | None:
    """Return a range of numbers, None for what is none; a number alone is both ends."""
    return ranges.interval([written, written] if isinstance(written, (int, float)) else written)


def _problem(key: str, written: Any, values: Range) -> str:
    """Return what is wrong with one measure, beside the range of the values; "" when nothing."""
    kept = _interval(written)
    if kept is None:
        return f'{written!r} is no range of numbers; write 1, [0, 1] or "(0, 1]"'
    if kept.high <= 0.0 or kept.low < 0.0 or (kept.low == kept.high and kept.open_low | kept.open_high) or kept.low > kept.high:
        return f"{written!r} holds no value; a row's {_MEASURES[key]} is drawn from 0 on"
    return contradicts(Rows(_MEASURES[key], kept), values)


def contradicts(rows: Rows, values: Range) -> str:
    """Return what keeps the length or sum of rows from being drawn beside the range of the values; "" when nothing."""
    if rows.measure == "sum" and values.low < 0.0:
        return 'needs values from 0 on; write `values: "[0, inf)"` beside it'
    # Rows are scaled to measure, so a range of values must hold whatever that makes of them: each is at most the measure.
    high = rows.kept.high
    if rows.measure and ((values.low != 0.0 and -values.low < high) or values.high < high):
        return f"leaves the range {values} of the values; let that begin at 0 or at {-high:g}, and end at {high:g}"
    return ""
