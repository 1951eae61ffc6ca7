"""Inputs that are the same for every seed get other values of their kind, or are told."""

from __future__ import annotations

import pytest
import torch

from pypto_op.triton.run.inputs import fixed, one_value, skewed

CAUSAL = torch.ones(20, 20, dtype=torch.bool).tril()
STARTS = torch.tensor([0, 3, 9, 20, 41], dtype=torch.int32)
BINS = torch.linspace(-2, 2, 9)


def test_what_two_seeds_have_in_common_is_noted_where_no_pass_moves_it() -> None:
    one, other = ([torch.randn(9, 20), CAUSAL, STARTS, torch.randint(0, 99, (50,)), torch.zeros(5)] for _ in range(2))
    assert fixed.fixed(*(fixed.marks(inputs, skewed.movable(inputs)) for inputs in (one, other))) == [
        False,
        True,
        True,
        False,
        False,
    ]


@pytest.mark.parametrize(
    "mask", [CAUSAL, ~CAUSAL, CAUSAL.float(), torch.zeros(20, 20).masked_fill(~CAUSAL, float("-inf"))],
    ids=["kept", "hidden", "factors", "added"],
)  # fmt: skip
def test_a_mask_hides_more_but_no_whole_row(mask: torch.Tensor) -> None:
    found = fixed.other(mask, torch.Generator().manual_seed(0))
    assert found is not None and found.dtype is mask.dtype and {*found.unique().tolist()} == {*mask.unique().tolist()}
    changed = found != mask
    assert 20 < int(changed.sum()) < 90 and not bool(changed[:, 0].any()) and bool((mask[changed] == mask[0, 0]).all())


def test_segments_keep_their_ends_and_lengths() -> None:
    found = fixed.other(STARTS, torch.Generator().manual_seed(0))
    assert found is not None and not torch.equal(found, STARTS) and (int(found[0]), int(found[-1])) == (0, 41)
    assert sorted(found.diff().tolist()) == [3, 6, 11, 21]


@pytest.mark.parametrize(
    ("starts", "lengths", "stay"),
    [
        ([0, 8, 11, 16], [8, 3, 5, 9], True),  # side by side
        ([0, 3, 8, 30], [3, 5, 9, 10], True),  # with a gap, and lengths that rise
        ([0, 8, 11, 16], [1, 2, 0, 1], False),  # labels of rows, say
        ([0, 8, 11, 16], [9, 3, 5, 9], False),
        ([0, 8, 11, 16], [16, 11, 8, 0], False),
    ],
)
def test_segments_stay_where_their_lengths_are_another_input(starts: list[int], lengths: list[int], stay: bool) -> None:
    """They would overlap, and a right kernel for each of them would be a race."""
    inputs = [torch.randn(4, 4), torch.tensor(starts), torch.tensor(lengths)]
    found = one_value.varied(inputs, 0, [False, True, True])
    assert (found is None) is stay
    assert any("tensor 1, tensor 2 is the same" in line for line in fixed.told(inputs, [False, True, True], taken=True)) is stay


def test_a_table_of_pages_has_another_order() -> None:
    table = torch.arange(12).view(3, 4)
    found = fixed.other(table, torch.Generator().manual_seed(0))
    assert found is not None and not torch.equal(found, table) and found.flatten().sort().values.tolist() == [*range(12)]


def test_positions_get_a_gap_first_and_stay_where_the_reference_takes_none() -> None:
    own = torch.arange(3, 33)
    moved = [dict(one_value.ways([torch.randn(4, 4), own], 0, [False, same])) for same in (True, False)]
    assert [*moved[0]] == ["other with gaps", "other"] and moved[0]["other"] is None and [*moved[1]] == ["other"]
    assert moved[0]["other with gaps"][1].tolist() == [*range(3, 18), *range(19, 34)] and int(own[-1]) == 32


def test_edges_of_bins_stay_sorted() -> None:
    found = fixed.other(BINS, torch.Generator().manual_seed(0))
    assert found is not None and bool((found.diff() > 0).all()) and bool((found[1:-1] != BINS[1:-1]).all())


@pytest.mark.parametrize(
    "given",
    [torch.arange(30), torch.arange(30)[None].expand(4, 30), torch.eye(9), torch.randint(0, 9, (4, 4)), torch.arange(9).float()],
)
def test_what_may_not_be_others_is_told(given: torch.Tensor) -> None:
    assert fixed.other(given, torch.Generator()) is None
    assert one_value.varied([torch.randn(4, 4), given], 0, [False, True]) is None
    (said,) = fixed.told([torch.randn(4, 4), given], [False, True], taken=True)
    assert said.startswith("of the inputs tensor 1 is the same for every seed")


def test_what_has_others_is_told_where_the_reference_does_not_take_them() -> None:
    assert fixed.told([CAUSAL], [True], taken=True) == []
    assert len(fixed.told([CAUSAL], [True], taken=False)) == 1
