"""Comparison of outputs: what must agree whatever the policy, what the numbers say, what is refused."""

import json
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.quickly import examples

from pypto_op.compare import CompareError, compare_leaves, detailed_tensor_compare
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
