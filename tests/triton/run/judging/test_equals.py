"""Which places of elements in order are right: equal elements may change places, and none may stand twice (`equals`)."""

from __future__ import annotations

import torch

from pypto_op.triton.run.judging.equals import settled

ROWS = torch.tensor([[3.0, 1.0, 3.0, 2.0], [0.0, 5.0, 5.0, 5.0]])
WANT = torch.tensor([[0, 2, 3], [1, 2, 3]])


def _is_right(got: list[list[int]], rows: torch.Tensor = ROWS, *, exact: bool = True) -> bool:
    found = settled([ROWS, WANT], [ROWS, torch.tensor(got)], [(1, 1, rows, exact)])
    return bool((found[1] == WANT).all())


def test_another_one_of_equal_elements_is_right() -> None:
    assert _is_right([[2, 0, 3], [3, 1, 2]])


def test_what_stands_twice_or_nowhere_or_is_smaller_is_wrong() -> None:
    for first in ([0, 0, 3], [0, 2, 1], [2, 0, 4], [-1, 2, 3]):
        assert not _is_right([first, [1, 2, 3]])


def test_what_was_computed_is_equal_within_rounding() -> None:
    rows = ROWS.clone()
    rows[0, 2] += 1e-6
    assert _is_right([[2, 0, 3], [1, 2, 3]], rows, exact=False)
    assert not _is_right([[2, 0, 3], [1, 2, 3]], rows)
    rows[0, 2] += 1e-3
    assert not _is_right([[2, 0, 3], [1, 2, 3]], rows, exact=False)


def test_what_is_no_order_and_another_structure_stay() -> None:
    other = torch.tensor([[2, 0, 3], [1, 2, 3]])
    assert settled([ROWS, WANT], [ROWS, other], [])[1] is other
    assert settled([ROWS, WANT], [other], [(1, 1, ROWS, True)]) == [other]
    short = other.to(torch.int32)
    assert settled([ROWS, WANT], [ROWS, short], [(1, 1, ROWS, True)])[1].dtype is torch.int32
