"""Whole numbers in the padding of integer inputs: what is planted, and what a right kernel may rely on and keeps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch

from pypto_op.documents import constraints
from pypto_op.judge.cases.padding import other_numbers

PAGES = torch.tensor([[5.0, 1.0], [2.0, 7.0], [4.0, 0.5], [3.0, 9.0]])


def page_maximum(table: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """Return the largest value of the pages that count, of each sequence."""
    kept = torch.arange(table.shape[1]) < lengths[:, None]
    return PAGES[table.long()].amax(-1).masked_fill(~kept, float("-inf")).amax(-1)


def planted(golden: Any, *inputs: Any, told: Sequence[Any] | None = None) -> list[Any]:
    """Return what `other_numbers` makes of inputs; `told` are their ends, (0, 3) for each where None."""

    def same(one: Sequence[Any], other: Sequence[Any]) -> bool:
        return torch.equal(golden(*one), golden(*other))

    return other_numbers(list(inputs), same, lambda place: (told or [(0, 3)] * len(inputs))[place])


def page_sum(table: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """Return the sum of the pages that count, each times its place, of each sequence."""
    places = torch.arange(table.shape[1]) + 1
    return (PAGES[table.long()].sum(-1) * places * (places <= lengths[:, None])).sum(-1)


def test_table_entries_behind_the_lengths_name_other_pages():
    table, lengths = torch.tensor([[2, 1, 1, 0], [0, 3, 2, 2]]), torch.tensor([2, 3])
    new, same_lengths = planted(page_sum, table, lengths, told=[(0, 3), (1, 4)])
    assert same_lengths is lengths and new.tolist() == [[2, 1, 0, 3], [0, 3, 2, 0]], "never what was there"


def test_a_maximum_over_all_pages_is_found_out():
    table, lengths = torch.tensor([[2, 1, 1, 1], [1, 0, 2, 2]]), torch.tensor([2, 3])
    everything = torch.tensor([4, 4])
    assert torch.equal(page_maximum(table, everything), page_maximum(table, lengths)), "the last page once more shows nothing"
    new = planted(page_maximum, table, lengths, told=[(0, 3), (1, 4)])[0]
    assert torch.equal(page_maximum(new, lengths), page_maximum(table, lengths))
    assert not torch.equal(page_maximum(new, everything), page_maximum(table, lengths))


def test_a_list_behind_a_count():
    def total(index: torch.Tensor, count: int) -> torch.Tensor:
        return (PAGES[index[:count].long()] * torch.arange(1, count + 1)[:, None]).sum(0)

    index = torch.tensor([3, 0, 3, 1, 1, 2], dtype=torch.int32)
    new, _ = planted(total, index, 3, told=[(0, 3), (0, 6)])
    assert new.tolist() == [3, 0, 3, 1, 1, 0], "the 1 fills more than half of the padding and stays"


@pytest.mark.parametrize(
    ("why", "table", "told"),
    [
        ("one value fills the padding: a promise may stand behind it", [[2, 1, -1, -1], [0, 3, 2, -1]], (-1, 3)),
        ("a kernel may search in a sorted list", [[0, 1, 2, 3], [0, 1, 1, 2]], (0, 3)),
        ("SPEC.md compares the table with more than sizes", [[2, 1, 1, 1], [0, 3, 2, 2]], None),
        ("there is no other legal value", [[2, 2, 2, 2], [2, 2, 2, 2]], (2, 2)),
    ],
)
def test_what_a_right_kernel_may_rely_on_stays(why, table, told):
    table = torch.tensor(table)
    assert planted(page_maximum, table, torch.tensor([2, 3]), told=[told, (1, 4)])[0] is table, why


def test_rows_of_distinct_values_keep_theirs():
    table = torch.tensor([[2, 3, 1, 0], [0, 3, 2, 1]])
    new = planted(page_sum, table, torch.tensor([2, 2]), told=[(0, 3), (1, 4)])[0]
    assert new.tolist() == [[2, 3, 0, 1], [0, 3, 1, 2]], "a kernel may invert the whole permutation"


def test_a_number_that_no_length_makes_count_is_no_padding():
    def sums(x: torch.Tensor, sizes: torch.Tensor) -> torch.Tensor:
        """Sum groups of rows; the last group is the rest, so its size is read by nobody."""
        starts = [0, *sizes[:-1].cumsum(0).tolist(), len(x)]
        return torch.stack([x[a:b].sum() for a, b in zip(starts, starts[1:], strict=False)])

    x, sizes = torch.rand(9), torch.tensor([4, 2, 3])
    assert planted(sums, x, sizes, told=[None, (0, 9)])[1] is sizes


@pytest.mark.parametrize(
    ("said", "ends"),
    [
        (["0 <= table < P", "B % 2 == 0"], (0, 6)),
        (["table >= -1"], (-1, None)),
        (["table < count"], None),
        (["entries of table are sorted"], None),
        ([], (None, None)),
    ],
)
def test_ends_are_those_that_spec_tells(said, ends):
    assert constraints.whole_ends(said, "table", {"P": 7, "B": 2}) == ends
