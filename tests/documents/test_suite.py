"""adversarial_suite.json: loading, selecting, completeness, and the sizes of P0 shapes."""

import json

import pytest

from pypto_op.documents import interfaces, p0_shapes, suite
from pypto_op.errors import ContractError


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


@pytest.mark.parametrize(
    "shape", [{"T": 8, "H": 4}, {"x": [8, 8], "weight": [4]}, {"weight": [4], "x": [8, 8]}, {"T": 8, "weight": [4]}]
)
def test_every_form_of_p0_shape_is_solved(shape):
    assert p0_shapes.solve(shape, interfaces.build(INTERFACES), "p0") == {"T": 8, "H": 4}


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
        p0_shapes.solve(shape, interfaces.build(INTERFACES), "p0_shapes[0]")
    assert words in caught.value.one_line() and "p0_shapes[0]" in caught.value.one_line()
