"""Comparison of outputs: what must agree whatever the policy, what the numbers say, what is refused."""

import json
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.quickly import examples

from pypto_op.compare import CompareError, compare_leaves, detailed_tensor_compare
from pypto_op.comparison.noise import zero_is_as_right
from pypto_op.comparison.numbers import ulp_distance
from pypto_op.documents.policy import get_policy
from pypto_op.vocabulary import FailureCategory

NAN, INF = math.nan, math.inf
FLOATS = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2]
INTS = [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, torch.uint64, torch.bool]


def compare(actual, expected, **options):
    return detailed_tensor_compare(actual, expected, verbose=False, **options)


# -- the signature -------------------------------------------------------------------------------------------


def test_it_is_called_as_the_seeds_call_it():
    x = torch.randn(3)
    assert compare(x, x.clone(), atol=1e-3, rtol=1e-3, tensor_name="out0")["tensor_name"] == "out0"
    result = detailed_tensor_compare(actual=x, expected=x.clone(), verbose=False)
    assert result["all_close"] is True


# fmt: off
REFERENCE_FIELDS = {
    "total_elements", "out_of_tolerance_count", "out_of_tolerance_ratio", "max_diff", "mean_diff", "std_diff",
    "max_out_of_tolerance_diff", "mean_out_of_tolerance_diff",
    "all_close",
}
OWN_FIELDS = {
    "max_abs_diff", "max_rel_diff", "rel_to_scale", "max_violation", "fail_fraction", "ulp_max",
    "worst_index",
    "nan_actual", "nan_expected", "inf_actual", "inf_expected", "special_mismatch_count", "sign_bias",
}
# fmt: on


@pytest.mark.parametrize("dtype", [*FLOATS, *INTS, torch.complex64])
def test_every_field_is_there_and_the_dict_is_strict_json(dtype):
    x = torch.tensor([[0, 1], [1, 0]]).to(dtype)
    y = torch.tensor([[1, 1], [1, 0]]).to(dtype)
    result = compare(x, y)
    assert result["all_close"] is False and result["category"] == "precision"
    assert set(result) >= REFERENCE_FIELDS | OWN_FIELDS
    json.dumps(result, allow_nan=False)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"atol": 1e-3}, "atol is given without rtol"),
        ({"rtol": 1e-3}, "rtol is given without atol"),
        ({"atol": -1e-3, "rtol": 0.0}, "-0.001"),
        ({"atol": NAN, "rtol": 0.0}, "nan"),
        ({"atol": "1e-3", "rtol": 0.0}, "str"),
        ({"atol": 0.0, "rtol": 0.0, "policy": "allclose@1"}, "exclude"),
        ({"policy": "twin@1"}, "twins"),
        ({"max_outliers_display": "3"}, "integer"),
    ],
)
def test_wrong_options_are_refused(options, words):
    with pytest.raises(CompareError, match=words):
        compare(torch.ones(2), torch.ones(2), **options)


@pytest.mark.parametrize("value", [None, 1.0, [1.0, 2.0], "x", (torch.ones(2),)])
@pytest.mark.parametrize("side", ["actual", "expected"])
def test_what_is_no_tensor_is_refused_by_name(value, side):
    arguments = {"actual": torch.ones(2), "expected": torch.ones(2)} | {side: value}
    with pytest.raises(CompareError, match=f"{side} is {type(value).__name__}"):
        detailed_tensor_compare(**arguments)
    with pytest.raises(TypeError):
        detailed_tensor_compare(**arguments)


def test_tensors_that_are_not_plain_are_refused():
    class Late(torch.Tensor):
        pass

    plain = torch.ones(2)
    for strange in (plain.as_subclass(Late), plain.to_sparse(), torch.ones(2, device="meta")):
        with pytest.raises(CompareError):
            compare(strange, plain)


# -- structure -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("actual", "expected", "words"),
    [
        (torch.ones(1, 3), torch.ones(3), "[1, 3], expected [3]"),
        (torch.ones(1), torch.ones(3), "[1], expected [3]"),
        (torch.ones(()), torch.ones(1), "[], expected [1]"),
        (torch.ones(0), torch.ones(0, 2), "[0], expected [0, 2]"),
        (torch.ones(3).half(), torch.ones(3), "torch.float16, expected torch.float32"),
        (torch.ones(3).int(), torch.ones(3).long(), "torch.int32, expected torch.int64"),
        (torch.ones(3).bool(), torch.ones(3).int(), "torch.bool, expected torch.int32"),
    ],
)
def test_shape_and_dtype_are_strict(actual, expected, words):
    result = compare(actual, expected)
    assert result["all_close"] is False and result["category"] == "structural"
    assert words in result["message"]


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_wrong_number_of_outputs_fails(count):
    two = [torch.ones(2), torch.ones(2)]
    found = compare_leaves([torch.ones(2)] * count, two, names=["a", "b"], policy=get_policy())
    assert not found.all_close and found.category is FailureCategory.STRUCTURAL
    assert f"returned {count} output(s), 2 expected" in found.message


def test_no_output_at_all_is_no_pass():
    assert not compare_leaves([], [], names=[], policy=get_policy()).all_close


def test_a_structural_fault_names_the_category_even_after_a_numeric_one():
    found = compare_leaves([torch.zeros(2), torch.ones(3)], [torch.ones(2)] * 2, names=["a", "b"], policy=get_policy())
    assert found.category is FailureCategory.STRUCTURAL
    assert [leaf.category.value for leaf in found.per_tensor] == ["precision", "structural"]
    json.dumps(found.as_dict(), allow_nan=False)


def test_empty_and_0d_tensors():
    empty = compare(torch.empty(0, 4), torch.empty(0, 4))
    assert empty["all_close"] and empty["total_elements"] == 0 and empty["finite_elements"] == 0
    scalar = compare(torch.tensor(1.0), torch.tensor(2.0))
    assert not scalar["all_close"] and scalar["worst_index"] == []
    assert scalar["std_diff"] == 0.0


# -- special values ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("actual", "expected", "close"),
    [
        ([NAN, 1.0], [NAN, 1.0], True),
        ([NAN, 1.0], [1.0, 1.0], False),
        ([1.0, 1.0], [NAN, 1.0], False),
        ([INF, 1.0], [INF, 1.0], True),
        ([-INF, 1.0], [INF, 1.0], False),
        ([1e38, 1.0], [INF, 1.0], False),
        ([NAN, 1.0], [INF, 1.0], False),
        ([0.0], [-0.0], True),
    ],
)
@pytest.mark.parametrize("policy", ["allclose@1", "mere_mare@1"])
def test_nan_and_inf_must_stand_in_the_same_places(actual, expected, close, policy):
    result = compare(torch.tensor(actual), torch.tensor(expected), policy=policy)
    assert result["all_close"] is close
    assert (result["special_mismatch_count"] > 0) is not close or close


def test_a_wrong_nan_is_the_worst_element_and_is_counted():
    expected = torch.zeros(3, 4)
    actual = expected.clone()
    actual[0, 1], actual[2, 3] = 5.0, NAN
    result = compare(actual, expected)
    assert result["worst_index"] == [2, 3] and result["out_of_tolerance_count"] == 2
    assert (result["nan_actual"], result["nan_expected"]) == (1, 0)


def test_only_special_values_is_told_apart_from_a_measured_pass():
    result = compare(torch.full((3,), NAN), torch.full((3,), NAN))
    assert result["all_close"] and result["finite_elements"] == 0


def test_complex_specials_are_compared_part_by_part():
    a = torch.tensor([complex(1, INF), complex(NAN, 0)])
    assert compare(a, a.clone())["all_close"]
    assert not compare(a, torch.tensor([complex(INF, 1), complex(NAN, 0)]))["all_close"]


# -- exactness -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", INTS)
def test_integers_and_bools_are_exact_whatever_the_tolerance(dtype):
    expected = torch.tensor([0, 1, 1]).to(dtype)
    actual = torch.tensor([0, 1, 0]).to(dtype)
    result = compare(actual, expected, atol=1e6, rtol=1e6)
    assert not result["all_close"] and result["worst_index"] == [2] and result["max_abs_diff"] == 1.0
    assert compare(expected.clone(), expected, atol=0.0, rtol=0.0)["all_close"]


def test_int64_is_not_rounded_through_floats():
    big = torch.tensor([2**62])
    assert not compare(big + 1, big)["all_close"]
    ends = compare(torch.tensor([2**63 - 1]), torch.tensor([-(2**63)]))
    assert not ends["all_close"] and ends["max_abs_diff"] == float(2**64 - 1)
    high = torch.tensor([2**63 - 1], dtype=torch.int64).view(torch.uint64)
    assert not compare(high, torch.tensor([-1]).view(torch.uint64))["all_close"]


def test_float64_is_compared_in_float64():
    x = torch.tensor([1.0], dtype=torch.float64)
    assert not compare(x + 1e-12, x, atol=1e-13, rtol=0.0)["all_close"]
    assert compare(x + 1e-12, x, atol=1e-11, rtol=0.0)["all_close"]


def test_complex_uses_the_modulus():
    expected = torch.tensor([3 + 4j])
    assert compare(expected + 0.04j, expected, atol=0.0, rtol=0.01)["all_close"]
    assert not compare(expected + 0.06j, expected, atol=0.0, rtol=0.01)["all_close"]


@pytest.mark.parametrize(
    ("dtype", "actual", "expected", "ulps"),
    [
        (torch.float32, 1.0 + 2**-22, 1.0, 2),
        (torch.float16, 1.0 + 2**-10, 1.0, 1),
        (torch.bfloat16, -1.0 - 2**-7, -1.0, 1),
        (torch.float64, 1.0 + 2**-52, 1.0, 1),
        (torch.float32, 1.4e-45, -1.4e-45, 2),
        (torch.float32, 0.0, -0.0, 0),
    ],
)
def test_ulp_distance(dtype, actual, expected, ulps):
    result = compare(torch.tensor([actual], dtype=dtype), torch.tensor([expected], dtype=dtype))
    assert result["ulp_max"] == ulps


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2])
def test_ulp_distance_is_one_between_neighbours_for_every_bit_pattern(dtype):
    width = 8 * torch.empty(0, dtype=dtype).element_size()
    patterns = torch.arange(-(2 ** (width - 1)), 2 ** (width - 1)).to({8: torch.int8, 16: torch.int16}[width])
    values = patterns.view(dtype)
    values = values[torch.isfinite(values.double())]
    values = values[values.double().argsort(stable=True)]
    distance = ulp_distance(values[1:], values[:-1])
    same = values[1:].double() == values[:-1].double()  # the two zeros
    assert bool((distance == torch.where(same, 0.0, 1.0)).all()) and int(same.sum()) == 1


# -- metrics -------------------------------------------------------------------------------------------------


def test_metrics_by_hand():
    expected = torch.tensor([[1.0, -2.0], [4.0, 0.5]])
    actual = torch.tensor([[1.5, -2.0], [3.0, 0.5]])
    result = compare(actual, expected, atol=0.1, rtol=0.1)
    assert result["max_abs_diff"] == result["max_diff"] == 1.0
    assert result["max_rel_diff"] == 0.5
    assert result["rel_to_scale"] == 0.25
    assert result["out_of_tolerance_count"] == 2 and result["fail_fraction"] == 0.5
    assert result["max_violation"] == pytest.approx(0.5 / 0.2) and result["worst_index"] == [0, 0]
    assert result["mean_diff"] == 0.375 and result["std_diff"] == pytest.approx(0.41457809)
    assert result["mean_out_of_tolerance_diff"] == 0.75 and result["max_out_of_tolerance_diff"] == 1.0
    assert result["sign_bias"] == 0.0


def test_sign_bias_shows_a_one_sided_error():
    expected = torch.linspace(1, 2, 100)
    assert compare(expected + 1e-6, expected)["sign_bias"] == 1.0
    assert compare(expected - 1e-6, expected)["sign_bias"] == -1.0


def test_zero_tolerance_means_equal():
    x = torch.randn(10)
    assert compare(x.clone(), x, atol=0.0, rtol=0.0)["all_close"]
    result = compare(x + x.sign() * 1e-6, x, atol=0.0, rtol=0.0)
    assert not result["all_close"] and result["max_violation"] > 1e300


@pytest.mark.parametrize(
    "make",
    [
        lambda x: x.t(),
        lambda x: x[:, ::2],
        lambda x: x[0].expand(500, -1),
        lambda x: x.unsqueeze(0),
    ],
)
def test_strides_do_not_matter_and_the_worst_index_is_right(make):
    base = torch.randn(600, 700)
    expected = make(base)
    actual = expected.contiguous().clone()
    where = tuple(size - 1 for size in expected.shape)
    actual[where] += 10
    result = compare(actual, expected, atol=1e-3, rtol=1e-3)
    assert result["worst_index"] == list(where) and result["out_of_tolerance_count"] == 1
    assert compare(expected.contiguous(), expected)["all_close"]


def test_large_virtual_tensors_are_walked_in_pieces():
    expected = torch.zeros(1).expand(3_000_001)
    actual = torch.zeros(3_000_001)
    actual[-1] = 1
    result = compare(actual, expected)
    assert result["worst_index"] == [3_000_000] and result["total_elements"] == 3_000_001


@settings(max_examples=examples(60))
@given(
    values=st.lists(st.tuples(st.floats(width=32, allow_nan=False), st.floats(width=32, allow_nan=False)), min_size=1),
    atol=st.floats(0, 10),
    rtol=st.floats(0, 1),
)
def test_allclose_with_given_tolerances_is_the_textbook_rule(values, atol, rtol):
    actual = torch.tensor([a for a, _ in values], dtype=torch.float64)
    expected = torch.tensor([e for _, e in values], dtype=torch.float64)
    result = compare(actual, expected, atol=atol, rtol=rtol)
    assert result["all_close"] == torch.allclose(actual, expected, atol=atol, rtol=rtol)
    assert (result["fail_fraction"] > 0) is not result["all_close"]


@settings(max_examples=examples(40))
@given(st.data())
def test_one_wrong_element_is_always_found(data):
    dtype = data.draw(st.sampled_from([*FLOATS, *INTS, torch.complex64]))
    shape = data.draw(st.lists(st.integers(1, 5), min_size=0, max_size=3))
    expected = torch.ones(shape).to(dtype)
    actual = expected.clone()
    flat = data.draw(st.integers(0, max(0, expected.numel() - 1)))
    actual.view(-1)[flat] = 0
    result = compare(actual, expected)
    assert not result["all_close"] and result["out_of_tolerance_count"] == 1


# -- what is printed -----------------------------------------------------------------------------------------

SECRET = 7.330127


def test_no_value_is_printed_or_returned_unless_asked_for(capsys):
    expected = torch.tensor([SECRET, 1.0])
    result = detailed_tensor_compare(torch.tensor([5.25, 1.0]), expected, tensor_name="out")
    text = capsys.readouterr().out + json.dumps(result)
    assert "out" in text and "Mismatched elements: 1 / 2" in text and "at index (0,)" in text
    assert "7.33" not in text and "5.25" not in text


def test_values_and_tensors_come_when_asked_for(capsys):
    expected = torch.tensor([SECRET, 1.0, NAN])
    actual = torch.tensor([5.25, 1.0, 2.0])
    result = detailed_tensor_compare(actual, expected, max_outliers_display=5, return_tensors=True)
    assert "actual 5.25, expected 7.33" in capsys.readouterr().out
    assert result["outlier_indices"] == [[2], [0]] and result["outlier_values2"][0] == "nan"
    assert result["tolerance_mask"].tolist() == [False, True, False]
    assert result["diff_tensor"][0] == pytest.approx(2.080127)


def test_verbose_false_prints_nothing(capsys):
    compare(torch.zeros(2), torch.ones(2))["all_close"]
    assert capsys.readouterr().out == ""


# -- policies ------------------------------------------------------------------------------------------------


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
