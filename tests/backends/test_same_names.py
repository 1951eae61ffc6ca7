"""What a candidate replaced is found by identity, whatever the new object says of itself."""

from __future__ import annotations

from typing import Any

import pytest

from pypto_op.backends.worker.tampering import same_names


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
