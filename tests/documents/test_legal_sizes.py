"""Sizes are rounded to what SPEC.md's constraints allow, not dropped; what constraints say in words is read too."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.quickly import examples

from pypto_op.documents import constraints
from pypto_op.documents.legal_sizes import nearest

sizes = st.integers(1, 200)


def anything(_: Mapping[str, int]) -> bool:
    return True


@settings(max_examples=examples(100))
@given(step=st.integers(1, 130), count=st.integers(1, 9), wanted=st.integers(1, 900), span=st.integers(0, 900))
def test_the_nearest_multiple_in_the_range_is_taken(step: int, count: int, wanted: int, span: int) -> None:
    low, high = max(1, step * count - span), step * count + span
    found = nearest([f"S % {step} == 0"], {"S": (low, high)}, {"S": step * count}, {"S": wanted}, anything)
    legal = [size for size in range(low, high + 1) if size % step == 0]
    best = min(abs(size - wanted) for size in legal)
    assert (found or {"S": step * count})["S"] in legal
    if found is not None:
        assert abs(found["S"] - wanted) == best


@settings(max_examples=examples(100))
@given(a=st.integers(1, 12), b=st.integers(1, 12), wanted=st.integers(1, 40))
def test_what_a_product_or_an_equality_ties_follows(a: int, b: int, wanted: int) -> None:
    said = ["A * B == C", "D == A"]
    found = nearest(said, {}, {"A": a, "B": b, "C": a * b, "D": a}, {"A": wanted}, anything, free=["C", "D"])
    assert found is None or (constraints.satisfied(said, found) and found["A"] == wanted and found["B"] == b)
    assert found is not None


@settings(max_examples=examples(100))
@given(groups=st.integers(1, 8), each=st.integers(1, 8), wanted=sizes)
def test_heads_stay_a_multiple_of_groups(groups: int, each: int, wanted: int) -> None:
    found = nearest(["H % G == 0"], {}, {"H": groups * each, "G": groups}, {"H": wanted}, anything)
    assert found is None or (found["H"] % groups == 0 and abs(found["H"] - wanted) < groups)


@settings(max_examples=examples(60))
@given(fixed=st.integers(1, 60), wanted=st.integers(1, 60))
@pytest.mark.slow
def test_a_divisor_of_a_fixed_size_is_found(fixed: int, wanted: int) -> None:
    found = nearest(["A * B == C"], {}, {"A": 1, "B": fixed, "C": fixed}, {"A": wanted}, anything, free=["B"])
    divisors = [size for size in range(1, fixed + 1) if fixed % size == 0]
    result = (found or {"A": 1})["A"]
    assert result in divisors and abs(result - wanted) == min(abs(size - wanted) for size in divisors)


def test_upwards_a_rest_stays_a_rest() -> None:
    said = ["S is a multiple of 64"]
    assert nearest(said, {}, {"S": 128}, {"S": 3 * 128 + 3}, anything, up=True) == {"S": 448}
    assert nearest(said, {}, {"S": 128}, {"S": 3 * 128 + 3}, anything) == {"S": 384}


def test_nothing_legal_is_said() -> None:
    assert nearest(["S == 8"], {}, {"S": 8}, {"S": 67}, anything) is None


@pytest.mark.parametrize(
    ("text", "good", "bad"),
    [
        ("S is a multiple of 64", {"S": 128}, {"S": 67}),
        ("S mod 64 == 0", {"S": 128}, {"S": 67}),
        ("S modulo G = 0", {"S": 128, "G": 64}, {"S": 67, "G": 64}),
        ("S % 64 is 0", {"S": 128}, {"S": 67}),
        ("S must be divisible by BT", {"S": 96, "BT": 32}, {"S": 97, "BT": 32}),
        ("H and D are multiples of 16", {"H": 32, "D": 16}, {"H": 32, "D": 17}),
        ("G divides H", {"G": 2, "H": 8}, {"G": 3, "H": 8}),
        ("S 必须是 64 的倍数", {"S": 64}, {"S": 65}),
        ("K is a power of two", {"K": 64}, {"K": 48}),
        ("D must be even", {"D": 4}, {"D": 3}),
        ("A * B = C", {"A": 2, "B": 3, "C": 6}, {"A": 2, "B": 3, "C": 7}),
        ("K in (64, 128)", {"K": 64}, {"K": 65}),
        ("H / G == 4", {"H": 8, "G": 2}, {"H": 9, "G": 2}),
        ("S >= 4, S <= 8", {"S": 5}, {"S": 9}),
    ],
)
def test_words_and_signs_are_read(text: str, good: dict[str, int], bad: dict[str, int]) -> None:
    assert constraints.satisfied([text], good) and not constraints.satisfied([text], bad)


@pytest.mark.parametrize("text", ["S is not a multiple of 64", "S is a multiple of 64 when causal", "weight has H elements"])
def test_what_is_not_plain_counts_as_satisfied(text: str) -> None:
    assert constraints.satisfied([text], {"S": 3, "H": 3})


HEEDED = {
    "S % 64 == 0": True,
    "S >= 2 * D and k <= S": True,
    "S is a multiple of 64": True,
    "0 <= labels < D": True,
    "x > 0, labels <= S - 1": True,
    "D in (16, 32)": True,
    "S % 64 == 0 or D == 1": True,
    "0 < k": True,
    "labels[:, 0] == 0": False,
    "labels.sum() <= S": False,
    "start <= labels": False,
    "0 <= start <= labels": False,
    "labels == 3": False,
    "labels != 3 or S == 1": False,
    "S >= 2 and start <= labels": False,
    "sum(labels) == S": False,
    "labels of a row differ": False,
}


@pytest.mark.parametrize("text", HEEDED)
def test_a_condition_that_no_draw_obeys_is_known(text: str) -> None:
    """Whoever wrote that offsets rise learnt nowhere that the generated inputs had them fall."""
    assert constraints.unheeded([text], {"S", "D", "k"}, ["x", "labels", "start"]) == ([] if HEEDED[text] else [text])
