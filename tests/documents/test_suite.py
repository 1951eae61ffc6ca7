"""adversarial_suite.json: loading, selecting, completeness, and the derived default."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.quickly import examples

from pypto_op.documents import default_suite, interfaces, schema, spec, suite
from pypto_op.documents.policy import get_policy
from pypto_op.errors import ContractError
from pypto_op.vocabulary import Level


def case(name, level, **more):
    return {"id": name, "level": level, "shape": {"T": 4}, "dtype": "float32", **more}


def write(tmp_path, cases, key="cases", **more):
    path = tmp_path / "adversarial_suite.json"
    data = {"schema_version": 1, "op": "rmsnorm", "total_modules": 1, key: cases, **more}
    path.write_text(json.dumps(data))
    return path


def test_levels_become_words_and_precision_defaults_to_true(tmp_path):
    loaded = suite.load(write(tmp_path, [case("a", 1, precision=False), case("b", "2"), case("c", "L5", gate="one")]))
    assert [(c["id"], c["level"], c["precision"]) for c in loaded.cases] == [
        ("a", "L1", False),
        ("b", "L2", True),
        ("c", "L5", True),
    ]
    assert loaded.cases[2]["gate"] == "one"


def test_test_cases_is_accepted_for_cases(tmp_path):
    assert len(suite.load(write(tmp_path, [case("a", 1)], key="test_cases")).cases) == 1


def test_duplicate_ids_are_refused_with_both_places(tmp_path):
    path = write(tmp_path, [case("a", 1), case("b", 2), case("a", 3)])
    with pytest.raises(ContractError, match=r"cases\[2\].id: 'a' is already the id of cases\[0\]"):
        suite.load(path)


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        ({}, "abc"),
        ({"levels": "L1,L2"}, "ab"),
        ({"levels": ["L2"]}, "b"),
        ({"levels": [5, 1]}, "ac"),
        ({"case": "c"}, "c"),
        ({"case": "c", "levels": "L5"}, "c"),
    ],
)
def test_select(tmp_path, options, ids):
    loaded = suite.load(write(tmp_path, [case("a", 1), case("b", 2), case("c", 5)]))
    assert [c["id"] for c in loaded.select(**options)] == list(ids)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"levels": "L3"}, "no case matches levels L3"),
        ({"case": "zz"}, "no case matches the case 'zz'"),
        ({"case": "a", "levels": "L5"}, "no case matches the case 'a' and levels L5"),
        ({"levels": "L6"}, "no level 'L6'"),
        ({"levels": ""}, "no level is named"),
        ({"levels": []}, "no level is named"),
    ],
)
def test_an_empty_selection_is_never_a_verdict(tmp_path, options, words):
    loaded = suite.load(write(tmp_path, [case("a", 1), case("b", 2), case("c", 5)]))
    with pytest.raises(ContractError, match=words):
        loaded.select(**options)


def test_completeness_is_a_question_of_its_own(tmp_path):
    cases = [case(f"{level}{n}", level, precision=level != 3, seed=n) for level in range(1, 6) for n in range(2)]
    path = write(tmp_path, cases[:-1])
    assert suite.load(path).cases
    problems = [finding.problem for finding in suite.check(path)]
    numbers = "different case(s) that compare numbers, needs 2"
    assert problems == [f"level L3 has 0 {numbers}", "level L5 has 1 case(s), needs 2"]
    cases[2]["precision"] = False
    assert [f.problem for f in suite.check(write(tmp_path, cases))] == [f"level L2 has 1 {numbers}", f"level L3 has 0 {numbers}"]


def test_two_names_for_the_same_inputs_are_one_case(tmp_path):
    cases = [case(f"{level}{n}", level, seed=n) for level in range(1, 6) for n in range(2)]
    assert suite.check(write(tmp_path, cases)) == []
    cases[9].update(seed=0, atol=1e-9, rtol=1e-9)
    problems = [finding.problem for finding in suite.check(write(tmp_path, cases))]
    assert problems == ["level L5 has 1 different case(s) that compare numbers, needs 2"]


INTERFACES = {
    "schema_version": 1,
    "op": "rmsnorm",
    "primary_inputs": [
        {"name": "x", "shape": ["T", "2*H"], "dtype": "float32"},
        {"name": "weight", "shape": ["H"], "dtype": "float32"},
    ],
    "modules": [
        {
            "id": 1,
            "name": "all",
            "inputs": [{"name": "x", "source": "primary"}, {"name": "weight", "source": "primary"}],
            "outputs": [{"name": "out", "shape": ["T", "H"], "dtype": "float32"}],
        }
    ],
    "final_outputs": [{"name": "out", "source": "module_1"}],
}


def make_spec(shapes, dynamic=("T",), ranges=None, dtypes=("float32", "bfloat16")):
    return spec.Spec(
        op_name="rmsnorm",
        supported_dtypes=tuple(dtypes),
        p0_shapes=tuple(shapes),
        dynamic_axes=tuple(dynamic),
        axis_ranges=ranges or {},
        shape_constraints=(),
        worded={},
        input_ranges={},
        fixed_inputs=(),
        default_params={},
        _policy=get_policy(),
    )


def derive(*args, **kwargs):
    made = default_suite.derive(make_spec(*args, **kwargs), interfaces.build(INTERFACES))
    assert schema.findings(made.as_dict(), "adversarial_suite") == []
    return made


def test_the_derived_suite_is_complete_and_goes_over_the_edges():
    made = derive([{"T": 128, "H": 32}, {"T": 256, "H": 64}])
    assert suite.check_complete(made) == [] and made.source == "derived"
    lengths = {c["shape"]["T"] for c in made.cases}
    assert {1, 15, 16, 17, 63, 64, 65, 127, 128, 129, 97} <= lengths
    for level in Level:
        dtypes = {c["dtype"]["default"] for c in made.cases if c["level"] == level}
        assert dtypes == {"float32", "bfloat16"}
    p0 = [c for c in made.cases if c["level"] == "L2"]
    assert {(c["shape"]["T"], c["shape"]["H"]) for c in p0} == {(128, 32), (256, 64)} and len(p0) == 4
    assert len({c["id"] for c in made.cases}) == len(made.cases)
    bfloat16 = next(c for c in made.cases if c["dtype"]["default"] == "bfloat16")
    assert (bfloat16["atol"], bfloat16["rtol"]) == (1e-2, 1.6e-2)


def test_static_axes_and_ranges_are_respected():
    made = derive([{"T": 128, "H": 32}], ranges={"T": (16, 128)})
    assert {c["shape"]["H"] for c in made.cases} == {32}
    assert all(16 <= c["shape"]["T"] <= 128 for c in made.cases)


def test_an_operator_of_one_fixed_shape_gets_further_seeds():
    made = derive([{"T": 128, "H": 32}], dynamic=(), dtypes=("float32",))
    assert suite.check_complete(made) == []
    assert {tuple(c["shape"].values()) for c in made.cases} == {(128, 32)}
    assert len({(c["level"], c["seed"]) for c in made.cases}) == len(made.cases)


def test_large_p0_shapes_stay_and_grow_no_further():
    made = derive([{"T": 4096, "H": 8192}])
    assert {c["shape"]["T"] for c in made.cases} >= {4096}
    assert all(c["shape"]["T"] <= 4096 for c in made.cases)


@pytest.mark.parametrize(
    "shape", [{"T": 8, "H": 4}, {"x": [8, 8], "weight": [4]}, {"weight": [4], "x": [8, 8]}, {"T": 8, "weight": [4]}]
)
def test_every_form_of_p0_shape_is_solved(shape):
    assert default_suite.solve(shape, interfaces.build(INTERFACES), "p0") == {"T": 8, "H": 4}


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ([8, 8], "gives no size for H"),
        ({"T": 8}, "gives no size for H"),
        ({"zz": [1]}, "zz with 1 dimension"),
        ({"x": [8]}, "x with 1 dimension"),
        ({"weight": [4], "x": [8, 9]}, "2*H is 8, not 9"),
        ({"T": 8, "weight": [4], "x": [9, 8]}, "T is 8 and 9"),
    ],
)
def test_p0_shapes_that_do_not_fit_are_refused(shape, words):
    with pytest.raises(ContractError) as caught:
        default_suite.solve(shape, interfaces.build(INTERFACES), "p0_shapes[0]")
    assert words in caught.value.one_line() and "p0_shapes[0]" in caught.value.one_line()


@pytest.mark.slow
@settings(max_examples=examples(60))
@given(
    shapes=st.lists(st.fixed_dictionaries({"T": st.integers(1, 5000), "H": st.integers(1, 300)}), min_size=1, max_size=3),
    dynamic=st.sampled_from([(), ("T",), ("H",), ("T", "H")]),
    dtypes=st.lists(st.sampled_from(["float32", "float16", "bfloat16", "int32"]), min_size=1, unique=True),
    low=st.integers(1, 40),
    width=st.integers(0, 400),
)
def test_any_spec_yields_a_complete_valid_suite(shapes, dynamic, dtypes, low, width):
    ranges = dict.fromkeys(dynamic, (low, low + width))
    shapes = [{a: min(max(n, low), low + width) if a in dynamic else n for a, n in s.items()} for s in shapes]
    made = derive(shapes, dynamic=dynamic, ranges=ranges, dtypes=dtypes)
    assert suite.check_complete(made) == []
    assert {(s["T"], s["H"]) for s in shapes} <= {(c["shape"]["T"], c["shape"]["H"]) for c in made.cases}
    for axis in dynamic:
        assert all(low <= c["shape"][axis] <= low + width for c in made.cases)
