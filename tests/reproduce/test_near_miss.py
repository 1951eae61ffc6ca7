"""The near-miss rule (design, row 5): natural rounding is flagged, defects are not."""

from __future__ import annotations

import pytest
import torch
from tests.twins.test_honest_forms import Judge

from pypto_op.compare import compare_leaves
from pypto_op.documents.policy import Policy, get_policy
from pypto_op.judge.findings.near_miss import is_near_miss

ALLCLOSE = get_policy({"name": "allclose", "atol": 1e-3, "rtol": 1e-3})
MERE_MARE = get_policy("mere_mare@1")
SCALE = 1e4


def near(actual: torch.Tensor, expected: torch.Tensor, policy: Policy = ALLCLOSE, condition: float | None = None) -> bool:
    found = compare_leaves([actual], [expected], names=["o"], policy=policy)
    assert not found.all_close, "only failures are asked about"
    return is_near_miss(found.per_tensor[0], actual, expected, policy, condition)


def truth() -> torch.Tensor:
    values = torch.randn(10_000, generator=torch.Generator().manual_seed(0)) * SCALE
    values[:5] = torch.tensor([1e-3, -2e-3, 0.5, 1.0, -0.1])
    return values


def test_rounding_at_small_cells_is_a_near_miss() -> None:
    expected = truth()
    assert near(expected + 5e-3, expected), "0.005 on a scale of 10000: only cells near 0 fail"


def test_in_a_small_output_a_few_cells_are_a_large_share_and_are_a_near_miss_all_the_same() -> None:
    expected = torch.full((128,), 3500.0)
    expected[:2] = torch.tensor([4.3, -3.7])
    actual = expected.clone()
    actual[:2] += 0.0012
    assert near(actual, expected, get_policy({"name": "allclose", "atol": 1e-5, "rtol": 1e-4}))


def test_where_the_golden_cancels_an_error_up_to_its_condition_is_a_near_miss() -> None:
    expected = truth()
    actual = expected + 5e-3 * SCALE
    assert not near(actual, expected) and not near(actual, expected, condition=1e3)
    assert near(actual, expected, condition=1e5)
    assert not near(expected * 1.2, expected, condition=1e5)


def test_few_slight_failures_on_a_large_scale_are_a_near_miss() -> None:
    expected = truth().abs() + 100.0
    actual = expected.clone()
    actual[:50] *= 1.0012  # 1.2 times what is allowed, at half a percent of the cells, all of ordinary size
    expected[-1] = actual[-1] = 1e9
    assert near(actual, expected)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda x: x * 1.01,
        lambda x: torch.zeros_like(x),
        lambda x: x + 100.0,
        lambda x: torch.where(torch.arange(x.numel()) == 7, torch.nan, x),
        lambda x: torch.full_like(x, float(x.mean())),
        lambda x: torch.where(x.abs() > 2e4, x * 1.5, x),
    ],
    ids=["scaled", "zero", "shifted", "nan", "constant", "large cells"],
)
def test_a_defect_is_none(spoil) -> None:
    expected = truth()
    assert not near(spoil(expected), expected)


def test_mere_mare_has_near_misses_at_small_cells_too() -> None:
    expected = truth()
    actual = expected.clone()
    actual[3] += 5e-3
    assert near(actual, expected, MERE_MARE)
    actual[100:200] *= 1.01
    assert not near(actual, expected, MERE_MARE)


def test_what_honest_twins_do_better_is_no_near_miss_and_integers_never_are() -> None:
    policy = get_policy("twin@2")
    expected = truth().double()
    twin = expected.float()
    actual = twin.clone()
    actual[3] += 5.0
    found = compare_leaves([actual], [expected], names=["o"], policy=policy, twins=[[twin]])
    assert not found.all_close and not is_near_miss(found.per_tensor[0], actual, expected, policy)
    assert not near(torch.tensor([1, 2]), torch.tensor([1, 3]))


@pytest.mark.parametrize("times", [1.9, 6.0])
@pytest.mark.parametrize("inner", [256, 2048])
def test_a_right_product_is_flagged_however_far_it_exceeds_a_tight_tolerance(inner: int, times: float) -> None:
    """The flag goes by what `reproduce` measures, the drift of honest runs, not by how tight the tolerance is."""
    generator = torch.Generator().manual_seed(inner)
    x, w = torch.randn(64, inner, generator=generator), torch.randn(inner, 96, generator=generator)

    def golden(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return x @ w

    def in_chunks(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return sum((x[:, k : k + 16] @ w[k : k + 16] for k in range(0, inner, 16)), torch.zeros(64, 96))

    drift = float((in_chunks(x, w) - golden(x, w)).abs().max())
    judge = Judge(golden, [x, w], get_policy({"name": "allclose", "atol": drift / times, "rtol": 0.0}))
    assert judge(in_chunks).near_miss
    assert not judge(lambda x, w: in_chunks(x, w) * 1.001).near_miss
