"""Every schema is itself valid, accepts its valid fixtures, and refuses each invalid one at the right node."""

import copy
import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from pypto_op import vocabulary
from pypto_op.documents import schema
from pypto_op.documents.reading import read_yaml
from pypto_op.errors import ContractError

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = Path(__file__).parent / "fixtures"
NAMES = sorted(path.name.removesuffix(".schema.json") for path in (ROOT / "schemas").glob("*.schema.json"))
DATA_OF_THE_BUNDLE = {
    "common",
    "credible",
    "environment_symptoms",
    "eval_request",
    "lint_events",
    "near_misses",
    "programs",
    "roles",
    "routes",
    "signatures",
    "transcript",
    "triton_static_policy",
    "workflow",
}
"""Definitions, and schemas of data files that lie in the bundle: those files are their fixtures."""

BY_A_TOOL_WITH_TESTS = {
    "state",
    "tool_results",
    "snapshot_report",
    "transcript_line",
    *(name for name in NAMES if name.startswith("debug_")),
}
"""Written by the state tool, the MCP server and the debugger's tools, whose own tests make and break real ones."""


def fixtures(name):
    return read_yaml(FIXTURES / f"{name}.yaml")


def edited(base, edit):
    """Return `base` with one node set or deleted; a path is written as in messages: a.b[0].c."""
    value = copy.deepcopy(base)
    path = re.findall(r"[^.\[\]]+", edit.get("set") or edit["delete"])
    keys = [int(part) if part.isdigit() else part for part in path]
    node = value
    for key in keys[:-1]:
        node = node[key]
    if "delete" in edit:
        del node[keys[-1]]
    else:
        node[keys[-1]] = edit["to"]
    return value


FIXED = [name for name in NAMES if (FIXTURES / f"{name}.yaml").is_file()]
VALID = [(name, n) for name in FIXED for n in range(len(fixtures(name)["valid"]))]
INVALID = [(name, n) for name in FIXED for n in range(len(fixtures(name)["invalid"]))]


@pytest.mark.parametrize("name", NAMES)
def test_the_schema_is_valid_and_its_references_resolve(name):
    Draft202012Validator.check_schema(schema.validator(name).schema)
    assert schema.validator(name).schema["$schema"].endswith("2020-12/schema")
    schema.findings({}, name)


def test_every_schema_has_fixtures():
    missing = set(NAMES) - set(FIXED) - DATA_OF_THE_BUNDLE - BY_A_TOOL_WITH_TESTS
    assert not missing
    assert set(FIXED) == {path.stem for path in FIXTURES.glob("*.yaml")}


@pytest.mark.parametrize(("name", "number"), VALID)
def test_valid_fixtures_are_accepted(name, number):
    assert schema.findings(fixtures(name)["valid"][number], name) == []


@pytest.mark.parametrize(("name", "number"), INVALID)
def test_invalid_fixtures_are_refused_at_the_right_node(name, number):
    data = fixtures(name)
    edit = data["invalid"][number]
    value = edited(data["valid"][0], edit)
    lines = [finding.one_line() for finding in schema.findings(value, name)]
    assert any(edit["expect"] in line for line in lines), lines
    with pytest.raises(ContractError) as caught:
        schema.check(value, name, file="doc.yaml")
    assert caught.value.one_line().startswith("doc.yaml: ") and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("edit", "told"),
    [
        ({"perf_traget": None}, "unknown key 'perf_traget'; is it 'perf_target'?"),
        ({"tolerance": ..., "tolerence": {}}, "unknown key 'tolerence' (and 1 more); is it 'tolerance'?"),
        ({"xyzzy": 1}, "unknown key 'xyzzy'; take it out"),
        ({"p0_shapes": 3}, "p0_shapes: 3 is not of type array; write array there"),
        ({"supported_dtypes": ["flaot16"]}, "half, float; write one of them"),
        ({"p0_shapes": []}, "p0_shapes: needs at least 1 item(s), has 0; mend it; schemas/spec.schema.json says"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_broken_document_is_told_with_a_remedy(edit, told):
    value = {key: item for key, item in fixtures("spec")["valid"][0].items() if key not in ("perf_target",)}
    with pytest.raises(ContractError) as caught:
        schema.check({k: v for k, v in {**value, **edit}.items() if v is not ...}, "spec", file="SPEC.md")
    assert told in caught.value.one_line()


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_key_is_told_with_a_remedy(name):
    for finding in schema.findings({}, name):
        assert finding.remedy or "is missing" not in finding.problem


def test_the_words_of_the_schemas_are_the_vocabulary():
    definitions = schema.validator("common").schema["$defs"]
    assert definitions["dtype"]["enum"] == list(vocabulary.DTYPES)
    aliases = definitions["dtype_or_alias"]["enum"]
    assert aliases == [*vocabulary.DTYPES, *vocabulary.DTYPE_ALIASES]
    assert definitions["mode"]["enum"] == list(map(str, vocabulary.Mode))
    assert definitions["correctness"]["enum"] == ["not_started", "golden_ok", *(f"{mode}_ok" for mode in vocabulary.Mode)]
    verdict = schema.validator("verdict").schema["properties"]
    assert verdict["failure_category"]["enum"] == [str(word) for word in vocabulary.FailureCategory]
    fingerprints = [str(word) for word in vocabulary.Fingerprint]
    assert verdict["divergence_fingerprint"]["enum"] == [*fingerprints, None]


def test_a_message_never_grows_with_the_value():
    huge = {"schema_version": "1", "op_name": "x" * 10_000, "dynamic_axes": ["a" * 10_000]}
    for finding in schema.findings(huge, "design"):
        assert len(finding.one_line()) < 500


@pytest.mark.parametrize("value", [[], 5, "text"])
def test_a_value_of_the_wrong_type_is_told_once(value):
    """The suite's schema forbids two keys beside one another, too: "[] is not allowed here" stood first."""
    found = [finding.problem for finding in schema.findings(value, "adversarial_suite")]
    assert found == [f"{value!r} is not of type object"]
