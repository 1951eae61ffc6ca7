"""What a candidate replaced is found by identity, whatever the new object says of itself."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

from pypto_op.backends.worker.tampering import Snapshot, same_names


class _Agrees:
    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0


@pytest.mark.parametrize(
    ("now", "same"),
    [
        ({"one": len, "none": None}, True),
        ({"none": None, "one": len}, True),
        ({"one": _Agrees(), "none": None}, False),
        ({"one": len}, False),
        ({"one": len, "other": len}, False),  # as many names, and the one that is gone stood for nothing
        ({"one": len, "none": None, "new": None}, False),
    ],
)
def test_names_are_the_same_where_each_stands_for_the_same_object(now: dict[str, Any], same: bool) -> None:
    assert same_names(now, {"one": len, "none": None}) is same


@pytest.mark.parametrize(
    ("put", "told"),
    [
        ({"i64": 2**63 - 1, "of 3": 2.5, 7: "seven"}, []),
        ({"i64": len}, ["numpy.iinfo._max_vals"]),
        ({"u1": 7}, ["numpy.iinfo._max_vals"]),  # one that stood there
        ({_Agrees(): 7}, ["numpy.iinfo._max_vals"]),
    ],
)
def test_a_table_may_remember_plain_values_beside_those_that_stood_there(
    put: dict[Any, Any], told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(numpy.iinfo, "_max_vals", {"u1": 255})
    snapshot = Snapshot(["numpy"])
    numpy.iinfo._max_vals.update(put)
    assert snapshot.replaced() == told
