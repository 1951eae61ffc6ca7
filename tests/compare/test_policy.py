"""Tolerance policies: names, versions, overrides, refusals, and that they hash by value."""

import math

import pytest

from pypto_op.documents import schema
from pypto_op.documents.policy import get_policy
from pypto_op.errors import ContractError

SEED_THRESHOLDS = {
    "float16": 2**-10,
    "bfloat16": 2**-7,
    "float32": 2**-13,
    "hifloat32": 2**-11,
    "float8_e4m3": 2**-3,
    "float8_e5m2": 2**-2,
    "float64": 2**-13,
}


@pytest.mark.parametrize("name", ["allclose@1", "mere_mare@1", "twin@1"])
def test_a_policy_survives_its_own_dict_and_keeps_its_digest(name):
    policy = get_policy(name)
    again = get_policy(policy.as_dict())
    assert policy.id == name and again == policy and again.digest() == policy.digest()
    assert schema.findings(policy.as_dict(), "policy") == []


def test_a_bare_name_means_the_newest_version_and_nothing_means_allclose():
    assert get_policy("mere_mare").id == "mere_mare@1"
    assert get_policy().id == "allclose@1"
    assert get_policy({"name": "twin"}) == get_policy("twin@2")


@pytest.mark.parametrize(("dtype", "threshold"), SEED_THRESHOLDS.items())
def test_mere_mare_holds_the_seeds_thresholds(dtype, threshold):
    numbers = get_policy("mere_mare@1").for_dtype(dtype)
    assert numbers == {"clamp": threshold, "mere": threshold, "mare": 10 * threshold}


def test_changing_a_number_changes_the_digest():
    loose = get_policy({"name": "allclose", "atol": 1e-3, "rtol": 1e-3})
    assert loose.digest() != get_policy("allclose@1").digest()
    assert loose.for_dtype("fp16") == {"atol": 1e-3, "rtol": 1e-3}


def test_per_dtype_overrides_leave_the_other_dtypes_alone():
    policy = get_policy({"name": "allclose", "per_dtype": {"bf16": {"atol": 0.5, "rtol": 0.25}}})
    assert policy.for_dtype("torch.bfloat16") == {"atol": 0.5, "rtol": 0.25}
    assert policy.for_dtype("float32") == get_policy("allclose").for_dtype("float32")


def test_as_dict_hands_out_a_copy():
    policy = get_policy("allclose@1")
    policy.as_dict()["per_dtype"]["float32"]["atol"] = 1e9
    assert policy.for_dtype("float32")["atol"] == 1e-5


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("nonsense", "no policy"),
        ("allclose@9", "allclose@9"),
        ({"version": 1}, "needs a name"),
        ({"name": "allclose", "atol": 1e-3}, "without rtol"),
        ({"name": "allclose", "rtol": 1e-3}, "without atol"),
        ({"name": "allclose", "atol": -1, "rtol": 1}, "atol is -1"),
        ({"name": "allclose", "atol": math.nan, "rtol": 1}, "atol is nan"),
        ({"name": "allclose", "atol": math.inf, "rtol": 1}, "atol is inf"),
        ({"name": "allclose", "atol": 10**400, "rtol": 1}, "atol is 1000"),
        ({"name": "allclose", "atol": True, "rtol": 1}, "bool"),
        ({"name": "allclose", "atol": "1e-3", "rtol": 1}, "str"),
        ({"name": "allclose", "colour": 1}, "colour"),
        ({"name": "allclose", "per_dtype": {"int32": {"atol": 1, "rtol": 1}}}, "int32"),
        ({"name": "allclose", "per_dtype": {"float16": {"atol": 1, "foo": 1}}}, "foo"),
        ({"name": "allclose", "per_dtype": {"float16": {"atol": math.inf}}}, "inf"),
        ({"name": "mere_mare", "atol": 1, "rtol": 1}, "takes no"),
        ({"name": "mere_mare", "per_dtype": {"float16": {"mere": 0}}}, "mere"),
        ({"name": "twin", "factor": {"mare": 0, "mere": 1, "rmse": 1}}, "policy.factor.mare"),
        ({"name": "twin", "factor": 3}, "policy.factor"),
        ({"name": "allclose", "per_dtype": 3}, "per_dtype"),
        ({"name": "allclose", "zero_guard": {"ratio": 2, "floor": {}}}, "zero_guard"),
        (7, "int"),
    ],
)
def test_bad_policies_are_refused_in_one_line_that_names_the_place(spec, words):
    with pytest.raises(ContractError) as caught:
        get_policy(spec)
    line = caught.value.one_line()
    assert words in line and "\n" not in line


def test_a_dtype_without_numbers_is_an_error_not_a_guess():
    with pytest.raises(ContractError, match="complex64"):
        get_policy("twin@1").for_dtype("complex64")
