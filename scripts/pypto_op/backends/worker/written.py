"""Which dicts were written to since they were last found right, without a look at what lies in them.

CPython gives a dict a number of its own at each change (PEP 509). Thousands of names are compared around every call of a
candidate; nearly always none of them changed, and the numbers of some hundred dicts say so in a tenth of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ctypes import c_uint64
from gc import get_referents
from typing import Any

_AT = 24
"""Where the number stands in a dict's memory, in bytes: behind the object's head and the count of what lies in it."""


class Written:
    """Notes when dicts are written to.

    Args:
        dicts: they live as long as this object does.
    """

    def __init__(self, dicts: Sequence[dict[str, Any]]) -> None:
        self._dicts = dicts
        self._numbers = [_number(one) for one in dicts] if _NUMBERED else []
        self._now: list[int] = []
        self._right: list[int] = []

    def places(self) -> Sequence[int]:
        """Return the places of dicts that were written to since `are_right` was last told; of all, where nobody can know."""
        # The numbers are taken before anybody looks at the dicts: what a thread writes meanwhile is seen the next time.
        self._now = [number.value for number in self._numbers]
        if not self._right:
            return range(len(self._dicts))
        if self._now == self._right:
            return ()
        return [place for place, number in enumerate(self._now) if number != self._right[place]]

    def are_right(self) -> None:
        """Take what lies in the dicts since `places` was last asked as right."""
        self._right = self._now


def dict_of(kind: type) -> dict[str, Any]:
    """Return the dict in which a class keeps its names; Python shows it through a view only."""
    (found,) = get_referents(vars(kind))
    assert isinstance(found, dict)  # that of a structure of ctypes is of a kind of its own
    return found


def _number(one: dict[str, Any]) -> c_uint64:
    return c_uint64.from_address(id(one) + _AT)


def _is_numbered() -> bool:
    """Whether this Python gives a dict a new number at each change, and none without one."""
    kind = type("Kind", (), {"name": 1})
    number, numbers = _number(dict_of(kind)), []
    changes: list[Callable[[], object]] = [
        lambda: vars(kind)["name"],
        lambda: setattr(kind, "name", 2),
        lambda: delattr(kind, "name"),
    ]
    for change in changes:
        before = number.value
        change()
        numbers.append(number.value - before)
    return numbers[0] == 0 and min(numbers[1:]) > 0


_NUMBERED = _is_numbered()
