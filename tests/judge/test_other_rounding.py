"""Which errors beside honest orders of sums count as another algorithm's rounding, and which as a fault."""

from __future__ import annotations

import pytest
import torch

from pypto_op.compare import TensorComparison, compare_leaves
from pypto_op.documents.policy import get_policy
from pypto_op.judge.answers.other_rounding import only_last_bits, rounds_otherwise, tells

TOLERANCE = get_policy({"name": "allclose", "per_dtype": {"float32": {"atol": 1e-4, "rtol": 1e-4}}})
TWINS = get_policy("twin@2")
TRUTH = torch.linspace(0.5, 4.0, 600, dtype=torch.float64).reshape(3, 200)
NOISE = torch.randn(3, 200, generator=torch.Generator().manual_seed(3), dtype=torch.float64)


def off_by(error: torch.Tensor) -> bool:
    """Return what is said of TRUTH with an error, relative to it, that no twin has."""
    actual = (TRUTH * (1 + error)).to(torch.float32)
    refused, kept = (_leaf(actual, TRUTH, TWINS), _leaf(actual, TRUTH.float(), TOLERANCE))
    assert not refused.all_close
    return rounds_otherwise(refused, kept, actual, TRUTH, TWINS)


def _leaf(actual: torch.Tensor, expected: torch.Tensor, policy: object) -> TensorComparison:
    twins = [[TRUTH.float()]] if policy is TWINS else None
    return compare_leaves([actual], [expected], names=["y"], policy=policy, twins=twins).per_tensor[0]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("error", "honest"),
    [
        (4e-7 * NOISE, True),  # a few roundings of float32 more than the golden's orders have
        (4e-6 * NOISE, False),  # ten times as much
        (torch.full_like(NOISE, 5e-7), False),  # an epsilon that lifts all
        (5e-7 * TRUTH.new_tensor(1.0) * (NOISE + 1.5), False),  # noise that leans
        (torch.where(torch.arange(600).reshape(3, 200) == 77, 2e-5, 4e-7 * NOISE), False),  # one element apart
    ],
    ids=["rounding", "16 bits", "epsilon", "leaning", "one element"],
)
def test_small_and_even_errors_are_rounding(error: torch.Tensor, honest: bool) -> None:
    assert off_by(error) is honest


def test_an_error_as_large_as_the_tolerance_is_none() -> None:
    narrow = get_policy({"name": "allclose", "per_dtype": {"float32": {"atol": 1e-6, "rtol": 1e-6}}})
    actual = (TRUTH * (1 + 4e-7 * NOISE)).to(torch.float32)
    refused, kept = _leaf(actual, TRUTH, TWINS), _leaf(actual, TRUTH.float(), narrow)
    assert not rounds_otherwise(refused, kept, actual, TRUTH, TWINS)


def test_a_tolerance_that_takes_anything_tells_nothing() -> None:
    assert tells(TOLERANCE, TRUTH, "float32")
    assert not tells(TOLERANCE, TRUTH * 1e-4, "float32")
    assert not tells(TOLERANCE, torch.zeros(4), "float32")
    assert not tells(TOLERANCE, torch.ones(4, dtype=torch.int32), "float32")


@pytest.mark.parametrize(
    ("error", "honest"),
    [
        (torch.where(torch.arange(600).reshape(3, 200) == 77, 1e-6, 0.0), True),  # one small element
        (torch.where(torch.arange(600).reshape(3, 200) == 77, 4e-6, 0.0), False),  # by more than last bits of the greatest
        (torch.full((3, 200), 1e-6, dtype=torch.float64), False),  # all elements
    ],
    ids=["last bits", "more", "everywhere"],
)
def test_little_that_is_left_of_a_difference_may_lose_last_bits_of_what_was_subtracted(error: torch.Tensor, honest: bool) -> None:
    truth = torch.where(torch.arange(600).reshape(3, 200) % 7 == 0, 0.01, TRUTH)
    leaf = compare_leaves(
        [(truth + error).to(torch.float32)], [truth], names=["y"], policy=TWINS, twins=[[truth.float()]]
    ).per_tensor[0]
    assert not leaf.all_close and only_last_bits(leaf) is honest


@pytest.mark.parametrize(("times", "honest"), [(3.0, True), (5.0, False)])
def test_where_a_sum_cancels_the_greatest_error_may_be_four_times_as_large(times: float, honest: bool) -> None:
    error = torch.where(torch.arange(600).reshape(3, 200) == 0, times * 1.9e-6, 0.0) * TRUTH
    leaf = _leaf((TRUTH + error).to(torch.float32), TRUTH, TWINS)
    assert [one.name for one in leaf.conditions if not one.ok] == ["mare"]
    assert only_last_bits(leaf, condition=1e5) is honest and not only_last_bits(leaf)
