"""Other values of the float scalars among an operator's inputs: an eps, a slope, a share."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pypto_op.documents import ranges
from pypto_op.documents.ranges import Range
from pypto_op.generators.operator.sources import Sources

if TYPE_CHECKING:
    from pypto_op.generators.cases.case_maker import Maker

_SMALL = 1e-2
_LESS, _MORE = 0.6, 1.7
"""Another value of a float scalar is so many times its default. By a power of two no product is rounded: a kernel that rounds
after the scale, or puts the scale into 16-bit queries, does then what is right."""
_INSTEAD_OF_SMALL = 0.3
"""What small ones become: a share of an eps would not show. No power of two either."""
_FAR = 77.0
"""So many times its default is far above it; no power of two."""


@dataclass(frozen=True)
class Scalar:
    """One float scalar.

    Attributes:
        default: what SPEC.md gives it.
        kept: the range that it stays in, in the base shape.
        free: SPEC.md says that it may be any number.
    """

    default: float
    kept: Range
    free: bool = False

    @property
    def _is_small(self) -> bool:
        return abs(self.default) < _SMALL

    def others(self) -> list[float]:
        """Return other values within the range, the most telling first."""
        first = _INSTEAD_OF_SMALL if self._is_small else _short(self.default * _LESS)
        far = [_INSTEAD_OF_SMALL * 10**step for step in (1, 2, 3)] if self._is_small else []
        values = (first, _short(self.default * _MORE), self.default * 10, self.default / 10, self.kept.high, *far)
        return [value for value in dict.fromkeys(values) if math.isfinite(value) and self._may_be(value)]

    def across(self) -> list[float]:
        """Return values on the other side of the default than `others` begins with, the most telling first.

        A share stays a share: what lies between 0 and 1 may be a probability, and a wrapper may refuse a greater one.
        """
        default, known = self.default, self.others()
        if not default or not known:
            return []
        nearer = [(1 + default) / 2] if _SMALL <= default < 1 else [_short(default * _MORE), default * 10]
        values = [default / 1e3, default / 10] if self._is_small else nearer
        return [value for value in values if self.kept.holds(value) and (value > default) != (known[0] > default)]

    def far_below(self) -> list[float]:
        """Return a tenth of the default, where it may be so small. A kernel may hold it to one half or more.

        A default that is small already, such as an eps, is crossed elsewhere (`across`).
        """
        return [] if self._is_small or not self.kept.holds(self.default / 10) else [self.default / 10]

    def far_above(self) -> list[float]:
        """Return 77 times the default, where SPEC.md names a range that has no upper end. A kernel may hold it to ten or to 64.

        Of a scalar without a range nobody says that it may be so large.
        """
        far = _short(self.default * _FAR)
        is_said = self.kept.high == math.inf and (self.kept.low > -math.inf or self.free)
        return [far] if is_said and not self._is_small and self._may_be(far) else []

    def opposite(self) -> list[float]:
        """Return a value of the other sign where SPEC.md says that any number will do; a range has its ends for that."""
        return [_short(-self.default * _LESS)] if self.free and self.default and self.kept == Range() else []

    def ends(self) -> list[float]:
        """Return the ends that it may have, but for its default and 0 (`may_be_zero`)."""
        return [end for end in (self.kept.low, self.kept.high) if math.isfinite(end) and end != 0.0 and self._may_be(end)]

    def near_open_ends(self) -> list[float]:
        """Return values next to each end but 0 that is itself outside, about a hundredth of the way from the default: 1 - 2^-10.

        Away from the end by a power of two, so that a kernel which takes 1 - beta in float32 loses nothing. What is small already
        has other values on both sides.
        """
        outside = [
            end for end, is_open in ((self.kept.low, self.kept.open_low), (self.kept.high, self.kept.open_high)) if is_open
        ]
        ways = [(end, self.default - end) for end in outside if math.isfinite(end) and end not in (0.0, self.default)]
        near = [end + math.copysign(2.0 ** round(math.log2(abs(way) / 100)), way) for end, way in ways if not self._is_small]
        return [value for value in near if self._may_be(value)]

    def may_be_zero(self) -> bool:
        """Whether 0 lies in the range, and is not the default: a wrapper may take it for "not given" (`lam or 0.95`).

        Where the golden mixes by it honest forms may part there, and an eps of no range may be a guard (`trying.rehearsed`).
        """
        return self._may_be(0.0)

    def _may_be(self, value: float) -> bool:
        return value != self.default and self.kept.holds(value)


def defaults(sources: Sources) -> dict[str, float]:
    """Return the float scalars with their defaults."""
    return {name: default for name, default in sources.scalars.items() if isinstance(default, float)}


def scalars(maker: Maker) -> dict[str, Scalar]:
    """Return every float scalar by name."""
    said = maker.sources.spec.shape_constraints
    free, usual = maker.sources.free, defaults(maker.sources)
    return {name: Scalar(default, ranges.of(said, name, maker.base), name in free) for name, default in usual.items()}


def _short(number: float) -> float:
    """Return a number without the digits that no reader needs."""
    return float(f"{number:.4g}")
