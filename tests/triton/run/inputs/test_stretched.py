"""Whole numbers reach as far as a reference takes them (`run/inputs/stretched.py`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.quickly import examples

from pypto_op.triton.run.inputs import stretched

_TABLE = torch.arange(30.0).reshape(10, 3)
_PLACES = torch.arange(64)


def _first(call: Callable[..., Any], *inputs: torch.Tensor) -> list[torch.Tensor] | None:
    """Return the inputs that are tried first."""
    return next((found for _, found in stretched.ways([*inputs], lambda given: call(*given))), None)


ROWS = {
    "a table": (lambda x: _TABLE[x], 9),
    "an embedding": (lambda x: F.embedding(x, _TABLE), 9),
    "an axis that is gathered": (lambda x: torch.arange(40.0).gather(0, x), 39),
    "labels": (lambda x: F.cross_entropy(torch.ones(4, 25), x), 24),
    "places that are added to": (lambda x: torch.zeros(17).index_add(0, x, torch.ones(4)), 16),
    "places that are scattered to": (lambda x: torch.zeros(12).scatter(0, x, torch.ones(4)), 11),
    "lengths": (lambda x: (_PLACES[None] < x[:, None]).sum(-1), 64),
    "lengths of what is hidden": (lambda x: (_PLACES[None] >= x[:, None]).sum(-1), 64),
    "last places": (lambda x: (_PLACES[None] <= x[:, None]).sum(-1), 63),
    "lengths that a mean divides by": (lambda x: (_PLACES[None] < x[:, None]).sum(-1) / x.clamp(min=1).float(), 64),
    "lengths on the left": (lambda x: (x[:, None] > _PLACES[None]).sum(-1), 64),
    "last places on the left": (lambda x: (x[:, None] >= _PLACES[None]).sum(-1), 63),
    "a cast before": (lambda x: _TABLE[x.int()], 9),
}


@pytest.mark.parametrize("name", ROWS)
def test_what_names_rows_reaches_the_last_one(name: str) -> None:
    call, most = ROWS[name]
    found = _first(call, torch.tensor([0, 2, 1, 3]))
    assert found is not None
    assert int(found[0][0]) == 0
    assert int(found[0].max()) == most
    assert found[0].argsort().tolist() == [0, 2, 1, 3]


def test_what_is_equal_in_two_tensors_stays_equal_far_away() -> None:
    ids, banned = torch.tensor([0, 7, 3, 900]), torch.tensor([3, 7, 55])
    for call in (torch.isin, lambda one, other: one[:, None] == other):
        found = _first(call, ids, banned)
        assert found is not None and int(found[0].max()) > 2**29
        assert torch.isin(*found).tolist() == [False, True, True, False]
    assert _first(lambda one, other: (one[:, None] == other) & (one == 7)[:, None], ids, banned) is None  # a number is known


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8])
def test_bytes_that_become_floats_reach_the_end_of_their_range(dtype: torch.dtype) -> None:
    codes = torch.tensor([0, 2, 7, 3, 2], dtype=dtype)
    codes = -codes if dtype is torch.int8 else codes
    found = _first(lambda x: x.float() * 0.5, codes)
    assert found is not None
    assert int(found[0].abs().max()) == torch.iinfo(dtype).max
    assert int(found[0][0]) == 0
    assert torch.equal(found[0].sign(), codes.sign())
    assert torch.equal(found[0].argsort(stable=True), codes.argsort(stable=True))


def test_bytes_that_reach_half_of_their_range_reach_all_of_it() -> None:
    found = _first(lambda x: x.float() * 1.2, torch.tensor([0, 149, 7], dtype=torch.uint8))
    assert found is not None
    assert found[0].tolist() == [0, 255, 11]


def test_nibbles_and_flags_in_bytes_stay() -> None:
    assert _first(lambda x: (x & 15).float(), torch.tensor([200, 17, 255], dtype=torch.uint8)) is None
    assert _first(lambda x: (x >> 4).float(), torch.tensor([20, 17, 25], dtype=torch.uint8)) is None
    assert _first(lambda x: x.float(), torch.tensor([0, 1, 1], dtype=torch.uint8)) is None


STAY = {
    "a size": lambda x: torch.zeros(int(x.max())),
    "a place that is computed": lambda x: _TABLE[x + 1],
    "what is cast to floats": lambda x: torch.sin(x.float()),
    "what divides": lambda x: torch.ones(4) / x,
    "counts of repetitions": lambda x: torch.ones(4).repeat_interleave(x),
    "factors of floats": lambda x: torch.tensor([1.0]) * x,
    "bins": lambda x: torch.bincount(x),
}


@pytest.mark.parametrize("name", STAY)
def test_what_is_used_otherwise_stays(name: str) -> None:
    assert _first(STAY[name], torch.tensor([0, 2, 1, 3])) is None


ADDED = {
    "added by an axis": lambda x: torch.zeros(40).index_add(0, x, torch.ones(4)),
    "scattered": lambda x: torch.zeros(40).scatter_add(0, x, torch.ones(4)),
    "put": lambda x: torch.zeros(40).index_put((x,), torch.ones(4), accumulate=True),
}


@pytest.mark.parametrize("name", ADDED)
def test_what_is_added_to_is_named_twice_where_it_may_be(name: str) -> None:
    places = torch.tensor([0, 39, 11, 5])
    ways = [dict(stretched.ways([places], lambda given: ADDED[name](*given), [may])) for may in (True, False)]
    assert [[found[0].tolist() for found in way.values()] for way in ways] == [[[0, 39, 11, 0]], []]
    assert not dict(stretched.ways([places], lambda given: torch.zeros(40)[given[0]], [True]))


def test_places_are_named_twice_in_a_row_where_what_is_put_there_is_the_same() -> None:
    scores, places = torch.randn(2, 40), torch.tensor([[0, 39, 11], [7, 5, 6]])
    alike = stretched.ways(
        [scores, places], lambda given: given[0].scatter(1, given[1], 2 * given[0].gather(1, given[1])), [True] * 2
    )
    assert [found[1].tolist() for _, found in alike] == [[[0, 39, 0], [7, 5, 7]]]
    numbers = torch.arange(6.0).reshape(2, 3)
    assert not dict(stretched.ways([scores, places], lambda given: given[0].scatter(1, given[1], numbers), [True] * 2))


def test_what_takes_a_shape_alone_is_no_use() -> None:
    found = _first(lambda x: torch.zeros_like(x) + x.new_ones(4) + 3 * x, torch.tensor([0, 1, 2, 3]))
    assert found is not None and int(found[0].max()) > 2**28


def test_nothing_and_all_get_parts_in_between() -> None:
    cover = torch.tensor([0, 255, 255, 0, 255, 255], dtype=torch.uint8)
    found = _first(lambda x: 3 * x.int(), cover)
    assert found is not None and len(found[0].unique()) > 3 and bool((found[0][cover == 0] == 0).all())


def test_flags_stay() -> None:
    assert _first(lambda x: x * 3, torch.tensor([0, 1, 1, 0])) is None


def test_labels_that_are_left_out_stay() -> None:
    found = _first(lambda x: F.cross_entropy(torch.ones(4, 25), x), torch.tensor([0, -100, 1, 3]))
    assert found is not None
    assert found[0].tolist() == [0, -100, 8, 24]


def test_ends_of_segments_stay_in_order() -> None:
    def spans(begin: torch.Tensor, end: torch.Tensor) -> torch.Tensor:
        return ((_PLACES[None] >= begin[:, None]) & (_PLACES[None] < end[:, None])).sum(-1)

    found = _first(spans, torch.tensor([0, 5, 3, 9]), torch.tensor([4, 6, 12, 10]))
    assert found is None or bool((found[0] <= found[1]).all())


GREATEST = [(torch.int64, 2**30), (torch.int32, 2**30), (torch.int16, 2**15), (torch.uint8, 255)]


@pytest.mark.parametrize(("dtype", "most"), GREATEST)
def test_what_is_computed_with_becomes_large(dtype: torch.dtype, most: int) -> None:
    found = _first(lambda x: x // 7, torch.tensor([0, 20, 10, 30], dtype=dtype))
    assert found is not None
    assert most // 4 < int(found[0].max()) <= most


@pytest.mark.parametrize(("dtype", "most"), [(torch.int64, 2**30), (torch.int32, 2**14)])
def test_powers_become_as_large_as_they_may(dtype: torch.dtype, most: int) -> None:
    found = _first(lambda x: x**2 + x, torch.tensor([0, 20, 10, 30], dtype=dtype))
    assert found is not None
    assert most // 4 < int(found[0].max()) <= most


def test_nothing_wraps_around() -> None:
    found = _first(lambda x: (x * x) // 7, torch.tensor([0, 20, 10, 30], dtype=torch.int32))
    assert found is not None
    assert 1000 < int(found[0].max()) < 2**15.5


def test_what_is_added_up_fits_into_32_bits() -> None:
    found = _first(lambda x: x.sum(), torch.full((100,), 9, dtype=torch.int32))
    assert found is not None
    assert int(found[0].long().sum()) < 2**31


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.integers(-1000, 1000), min_size=2, max_size=20))
def test_order_sign_and_equality_stay(numbers: list[int]) -> None:
    own = torch.tensor(numbers)
    found = _first(lambda x: x + 1, own)
    if found is None:
        assert max(map(abs, numbers)) < 2
        return
    assert torch.equal(found[0].sign(), own.sign())
    assert torch.equal((found[0][:, None] - found[0][None]).sign(), (own[:, None] - own[None]).sign())


def _negative(call: Callable[..., Any], *inputs: torch.Tensor) -> list[torch.Tensor] | None:
    return next((found for _, found in stretched.below_zero([*inputs], lambda given: call(*given))), None)


COMPUTED = {
    "a quotient": lambda x: x // 7,
    "a quotient by a rounding mode": lambda x: torch.div(x, 7, rounding_mode="floor"),
    "a remainder": lambda x: x % 7 + 1,
    "a greatest element": lambda x: x.amax(-1),
    "the least of sums": lambda x: (x + x).amin(),
}


@pytest.mark.parametrize("name", COMPUTED)
def test_what_is_only_computed_with_goes_below_zero(name: str) -> None:
    own = torch.tensor([[30, 20, 10, 40], [0, 3, 1, 2]])
    found = _negative(COMPUTED[name], own)
    assert found is not None
    assert found[0].tolist() == [[-30, -20, -10, -40], [0, 3, 1, 2]]
    assert own.min() == 0


NAMES = {
    "a page and a place within it": lambda x: (_TABLE[x // 8], x % 8),
    "a bucket that is added to": lambda x: torch.zeros(9).index_add(0, x.reshape(-1) // 8, torch.ones(4)),
    "marks": lambda x: F.one_hot(x % 4, 4),
    "lengths": lambda x: (x.amax(), _PLACES[None] < x.reshape(-1, 1)),
    "blocks that are compared": lambda x: (x // 8, x[:, None] >= x[:, :, None]),
    "what divides": lambda x: torch.full_like(x, 99) // (x + 1),
    "bits": lambda x: (x & 3) // 2,
    "sums": lambda x: x.sum(-1),
    "floats": lambda x: (x // 7).float(),
}


@pytest.mark.parametrize("name", NAMES)
def test_what_names_places_or_is_no_quotient_keeps_its_sign(name: str) -> None:
    assert _negative(NAMES[name], torch.tensor([[30, 20, 10, 40]])) is None


def test_greatest_elements_keep_their_sign_beside_numbers_of_both() -> None:
    own = torch.tensor([30, 20, 10, 40])
    assert _negative(lambda x, y: (x.amax(), y), own, torch.tensor([-1.5, 2.0])) is None
    assert _negative(lambda x, y: (x // 7, y), own, torch.tensor([-1.5, 2.0])) is not None


@pytest.mark.parametrize(
    "own", [torch.tensor([0, 1, 1, 0]), torch.tensor([1, 2, 5, 9]), torch.tensor([9, 2, 5, 3], dtype=torch.uint8)]
)
def test_flags_sorted_numbers_and_bytes_keep_their_sign(own: torch.Tensor) -> None:
    assert _negative(lambda x: x // 7, own) is None


def test_large_whole_numbers_leave_no_rest_now_and_then() -> None:
    """Random years hardly hold one of a hundred that is none of four hundred."""
    years = torch.arange(1901, 2031)[torch.randperm(130, generator=torch.Generator().manual_seed(1))]
    found = _first(lambda y: (y % 4 == 0) & ((y % 100 != 0) | (y % 400 == 0)), years)
    assert found is not None and int((found[0] % 100 == 0).sum()) > 5 and int((found[0] % 100 != 0).sum()) > 5
