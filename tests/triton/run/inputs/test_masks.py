"""Rows of a mask that are all off, or on, hardly ever are drawn: a pass has them, where the task means masks that are drawn."""

from __future__ import annotations

import pytest
import torch

from pypto_op.triton.run.inputs import masks

DRAWS = torch.Generator().manual_seed(0)
DRAWN = torch.rand(12, 20, generator=DRAWS) > 0.5


def moved(tensor: torch.Tensor, *drawn: torch.Tensor) -> torch.Tensor | None:
    """Return how a mask is moved after these draws of it."""
    found = None
    for draw in (*drawn, tensor):
        found = masks.habits([draw], found)
    changed = masks.moved([tensor], found or [])
    return None if changed is None else changed[0]


@pytest.mark.parametrize(
    "mask",
    [DRAWN, DRAWN.to(torch.int64), DRAWN.float(), DRAWN.float() * -1e9, torch.where(DRAWN, 0.0, float("-inf")), DRAWN.t().t(),
     DRAWN[:, None, None, :], DRAWN[:, :, None]],
    ids=["bool", "whole", "float", "added", "infinite", "again", "of_heads", "of_rows"],
)  # fmt: skip
def test_rows_of_a_mask_are_off_and_on(mask: torch.Tensor) -> None:
    changed = moved(mask)
    assert changed is not None
    rows = changed.reshape(12, 20)
    low, high = torch.aminmax(mask)
    assert bool((rows[0] == low).all() and (rows[1] == high).all())
    assert [int((row == high).sum()) for row in rows[2:6]] == [1, 19, 1, 19]
    assert torch.equal(rows[6:10], mask.reshape(12, 20)[6:10])


@pytest.mark.parametrize(
    "other",
    [torch.ones(8, 8), torch.rand(8, 8), torch.tensor([0, 1]), torch.randint(0, 9, (8, 8)), torch.zeros(8, 8, dtype=torch.bool),
     torch.tensor([0.0, 64.0] * 16), torch.empty(0, dtype=torch.bool), torch.eye(8).to(torch.complex64)],
    ids=["ones", "floats", "two", "whole", "one_value", "two_values", "empty", "complex"],
)  # fmt: skip
def test_other_inputs_stay(other: torch.Tensor) -> None:
    assert not masks.found([other])
    assert moved(other) is None


def test_masks_that_are_the_same_for_every_seed_stay() -> None:
    causal = torch.ones(8, 8, dtype=torch.bool).tril()
    assert masks.moved([causal], masks.habits([causal], None), [True]) is None


def test_a_vector_is_off_and_an_expanded_mask_keeps_its_layout() -> None:
    vector = moved(torch.tensor([True, False, True]), torch.tensor([False, False, True]), torch.tensor([True, True, False]))
    assert vector is not None and not bool(vector.any())
    expanded = moved(DRAWN[:, None, :].expand(12, 3, 20))
    assert expanded is not None and expanded.stride() == (20, 0, 1) and not bool(expanded[0].any())


def test_what_all_rows_have_in_common_stays() -> None:
    first = DRAWN.clone()
    first[:, 0], first[:, 7] = True, False
    kept = moved(first)
    assert kept is not None and bool(kept[:, 0].all()) and not bool(kept[:, 7].any()) and int(kept[0].sum()) == 1
    square = DRAWN[:8, :8] | torch.eye(8, dtype=torch.bool)
    kept = moved(square, torch.eye(8, dtype=torch.bool), ~torch.eye(8, dtype=torch.bool).roll(1, 0))
    assert kept is not None and bool(kept.diagonal().all()) and int(kept[0].sum()) == 1


def test_a_place_that_one_draw_has_on_by_chance_does_not_stay() -> None:
    few = torch.tensor([[True, False, True, False], [True, False, False, False]])
    kept = moved(few, few.flip(1), ~few)
    assert kept is not None and not bool(kept[0].any()) and bool(kept[1].all())


@pytest.mark.parametrize("flipped", [False, True])
def test_lengths_stay_lengths(flipped: bool) -> None:
    lengths = torch.tensor([3, 5, 20, 1, 7, 9, 2, 2, 18, 4])
    mask = torch.arange(20)[None] < lengths[:, None]
    kept = moved(mask.flip(1) if flipped else mask)
    assert kept is not None
    kept = kept.flip(1) if flipped else kept
    assert bool((kept.int().diff(dim=1) <= 0).all()) and bool(kept[:, 0].all())
    assert bool(kept[1].all()) and int(kept.sum(1).min()) == 1


CHOICE = torch.nn.functional.one_hot(torch.randint(0, 8, (12,), generator=DRAWS), 8)
GRAPH = (DRAWN[:, :12] | DRAWN[:, :12].T).float()


@pytest.mark.parametrize(
    ("mask", "others"),
    [(CHOICE, []), (CHOICE.float(), []), (GRAPH, []), (DRAWN, [DRAWN.sum(1)]), (DRAWN, [~DRAWN]), (DRAWN, [DRAWN.float()])],
    ids=["choice", "labels", "graph", "lengths", "opposite", "again"],
)  # fmt: skip
def test_a_mask_that_other_numbers_follow_from_stays(mask: torch.Tensor, others: list[torch.Tensor]) -> None:
    found = masks.habits([mask, *others], None)
    assert masks.moved([mask, *others], found) is None


def test_rows_of_two_masks_with_one_element_share_none() -> None:
    other = DRAWN.roll(3, 1).roll(1, 0)
    one, two = masks.moved([DRAWN, other], masks.habits([DRAWN, other], None))
    both = one & two
    assert not bool(both[0].any()) and bool(both[1].all())
    assert bool(one[2].any() and two[2].any()) and not bool(both[2].any())
