"""What each policy allows: the averages, given tolerances, honest twins, and zeros."""

import pytest
import torch

from pypto_op.compare import CompareError, compare_leaves, detailed_tensor_compare
from pypto_op.comparison.noise import zero_is_as_right
from pypto_op.documents.policy import get_policy
from pypto_op.vocabulary import FailureCategory

NAN, INF = float("nan"), float("inf")


def compare(actual, expected, **options):
    return detailed_tensor_compare(actual, expected, verbose=False, **options)


def test_mere_and_mare_are_both_needed_and_both_strict():
    t = 2.0**-13
    expected = torch.ones(4, dtype=torch.float64)  # float64 uses the float32 row
    off_by = lambda values: expected + torch.tensor(values, dtype=torch.float64)  # noqa: E731
    exactly_at_mere = compare(off_by([t] * 4), expected, policy="mere_mare@1")
    assert not exactly_at_mere["all_close"] and exactly_at_mere["out_of_tolerance_count"] == 0
    assert compare(off_by([t * 0.99] * 4), expected, policy="mere_mare@1")["all_close"]
    many = torch.ones(1000, dtype=torch.float64)
    spike = many.clone()
    spike[7] += 10 * t
    at_mare = compare(spike, many, policy="mere_mare@1")
    assert not at_mare["all_close"] and at_mare["worst_index"] == [7]
    spike[7] -= t / 100
    assert compare(spike, many, policy="mere_mare@1")["all_close"]


def test_mere_mare_clamps_small_denominators():
    t = 2.0**-13
    expected = torch.tensor([1e-9, 1.0, 1.0, 1.0])
    actual = expected + torch.tensor([t * t, 0, 0, 0])
    assert compare(actual, expected, policy="mere_mare@1")["all_close"]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("policy", ["mere_mare@1", "allclose@1"])
def test_an_all_zero_output_cannot_pass_when_the_golden_is_not_zero(dtype, policy):
    expected = torch.full((64,), 9e-7 if dtype is torch.float16 else 1e-9).to(dtype)
    result = compare(torch.zeros_like(expected), expected, policy=policy)
    assert not result["all_close"] and result["zero_output"]
    assert any(c["name"] == "not_all_zero" and not c["ok"] for c in result["conditions"])
    assert compare(expected.clone(), expected, policy=policy)["all_close"]
    nearly = compare(expected.float().mul(1e-4).to(dtype), expected, policy=policy)
    assert not nearly["all_close"]


def test_a_zero_golden_accepts_a_zero_output():
    assert compare(torch.zeros(8), torch.zeros(8), policy="mere_mare@1")["all_close"]
    noise = torch.full((8,), 1e-14)
    assert compare(torch.zeros(8), noise, policy="mere_mare@1")["all_close"]


def test_given_tolerances_mean_the_textbook_rule_but_still_report_the_zero():
    result = compare(torch.zeros(8), torch.full((8,), 1e-5), atol=1e-3, rtol=1e-3)
    assert result["all_close"] and result["zero_output"]


def test_a_constant_where_the_golden_varies_is_reported():
    expected = torch.linspace(0.495, 0.505, 50)
    assert compare(torch.full((50,), 0.5), expected, atol=1e-2, rtol=0.0)["constant_output"]
    assert not compare(expected.clone(), expected)["constant_output"]


def test_what_is_left_below_the_least_normal_number_is_no_variation() -> None:
    """Gradients that vanish are a few of float16's least steps in one algorithm, and zero in another."""
    step = 2.0**-24
    left, some = (torch.tensor([0.0, count * step] * 25, dtype=torch.float16) for count in (3, 40))
    assert not compare(torch.zeros(50, dtype=torch.float16), left, atol=1e-3, rtol=0.0)["constant_output"]
    assert compare(torch.zeros(50, dtype=torch.float16), some, atol=1e-3, rtol=0.0)["constant_output"]


def twin_case(error, twin_errors, dtype=torch.float32):
    truth = torch.linspace(1, 2, 1000, dtype=torch.float64)
    wave = torch.where(torch.arange(1000) % 2 == 0, 1.0, -1.0).double()
    twins = [[(truth * (1 + e * wave)).to(dtype)] for e in twin_errors]
    actual = (truth * (1 + error * wave)).to(dtype)
    return compare_leaves([actual], [truth], names=["o"], policy=get_policy("twin@1"), twins=twins)


def test_twin_allows_a_factor_of_the_worst_honest_error_and_no_more():
    assert twin_case(3e-5, [1e-6, 2e-5]).all_close
    too_far = twin_case(5e-5, [1e-6, 2e-5])
    assert not too_far.all_close
    assert {c.name for c in too_far.per_tensor[0].conditions if not c.ok} == {"mere", "rmse"}


def test_twin_has_a_floor_for_exact_twins():
    assert twin_case(1e-7, [0.0]).all_close
    assert not twin_case(1e-5, [0.0]).all_close


def test_twin_sees_one_wrong_element_and_a_small_one():
    truth = torch.linspace(-1, 1, 1001, dtype=torch.float64)
    twin = truth.float()
    actual = twin.clone()
    actual[501] += 0.001
    found = compare_leaves([actual], [truth], names=["o"], policy=get_policy("twin@1"), twins=[[twin]])
    assert not found.all_close and found.per_tensor[0].worst_index == (501,)


def test_twin_demands_the_twins_dtype_and_accepts_their_overflow():
    truth = torch.tensor([1.0, 70000.0, 65519.0], dtype=torch.float64)
    policy = get_policy("twin@1")
    twin = torch.tensor([1.0, INF, INF], dtype=torch.float16)
    same = compare_leaves([twin.clone()], [truth], names=["o"], policy=policy, twins=[[twin]])
    assert same.all_close
    finite = torch.tensor([1.0, INF, 65504.0], dtype=torch.float16)
    assert compare_leaves([finite], [truth], names=["o"], policy=policy, twins=[[twin]]).all_close
    nan = torch.tensor([NAN, INF, 65504.0], dtype=torch.float16)
    assert not compare_leaves([nan], [truth], names=["o"], policy=policy, twins=[[twin]]).all_close
    wide = compare_leaves([twin.float()], [truth], names=["o"], policy=policy, twins=[[twin]])
    assert wide.category is FailureCategory.STRUCTURAL


def test_twin_compares_integer_outputs_exactly():
    truth = torch.tensor([1, 2, 3])
    policy = get_policy("twin@1")
    assert compare_leaves([truth.clone()], [truth], names=["i"], policy=policy, twins=[[truth]]).all_close
    assert not compare_leaves([truth + 1], [truth], names=["i"], policy=policy, twins=[[truth]]).all_close


def test_twins_that_do_not_fit_are_refused():
    truth, twin = torch.ones(2, dtype=torch.float64), torch.ones(2)
    policy = get_policy("twin@1")
    bad = (None, [], [[]], [[torch.ones(3)]], [[twin], [twin.half()]], [[twin, twin]])
    for twins in bad:
        with pytest.raises(CompareError):
            compare_leaves([twin], [truth], names=["o"], policy=policy, twins=twins)
    with pytest.raises(CompareError):
        compare_leaves([twin], [twin], names=["o"], policy=policy, twins=[[twin]])
    with pytest.raises(CompareError):
        compare_leaves([twin], [twin], names=["o"], policy=get_policy(), twins=[[twin]])
    with pytest.raises(CompareError):
        compare_leaves([twin], [twin], names=[], policy=get_policy())


@pytest.mark.parametrize("value", [NAN, INF])
@pytest.mark.parametrize("where", ["golden", "truth"])
def test_zeros_are_not_as_right_as_a_golden_with_special_values(value, where):
    zeros, cancelled, truth = torch.zeros(4, 8), torch.full((4, 8), 1e-9), torch.zeros(4, 8, dtype=torch.float64)
    assert zero_is_as_right(zeros, cancelled, truth)
    {"golden": cancelled, "truth": truth}[where][1, 3] = value
    assert not zero_is_as_right(zeros, cancelled, truth)
