"""The tables that the guard reads are what their schemas say, and name nothing that does not exist."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
import yaml
from tests.hooks.conftest import ROOT

from pypto_op.cli import _COMMANDS
from pypto_op.vocabulary import Role
from pypto_op_lint.guard import programs, roles


@pytest.mark.parametrize(("table", "schema"), [(roles.TABLE, "roles"), (programs.TABLE, "programs")])
def test_the_tables_fit_their_schemas(table: Path, schema: str) -> None:
    document = yaml.safe_load(table.read_text(encoding="utf-8"))
    rules = json.loads((ROOT / f"schemas/{schema}.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(rules)
    jsonschema.Draft202012Validator(rules).validate(document)


def test_a_broken_table_does_not_fit() -> None:
    rules = json.loads((ROOT / "schemas/roles.schema.json").read_text())
    document = yaml.safe_load(roles.TABLE.read_text())
    document["roles"]["pypto-op-coder"]["writes"][0]["fils"] = ["x"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, rules)


def test_every_role_of_the_team_has_a_row() -> None:
    assert {str(role) for role in Role} <= set(roles.load_roles().roles), "an agent of nobody's team may have one too"
    assert set(roles.load_roles().state_writers) <= {str(role) for role in Role}


def test_identities_are_read_as_the_harnesses_write_them() -> None:
    table = roles.load_roles()
    for name in ("pypto-op-coder", "pypto-op:pypto-op-coder", "x:nested:pypto-op-coder"):
        found = table.role_of(name)
        assert found is not None and found.name == "pypto-op-coder"
    for name in (None, "", "build", "general-purpose", "pypto-op:coder", "pypto-op-coder2"):
        assert table.role_of(name) is None


@pytest.mark.parametrize(
    ("glob", "path", "fits"),
    [
        ("*.md", "SPEC.md", True), ("*.md", "a/SPEC.md", False), ("_debug/**", "_debug/a/b", True),
        ("**/__pycache__/**", "modules/__pycache__/x.pyc", True), ("**/__pycache__/**", "__pycache__/x.pyc", True),
        ("{op}_impl.py", "soft_impl.py", True), ("{op}_impl.py", "other_impl.py", False),
        ("modules/{op}_module{suffix}_impl.py", "modules/soft_module12_impl.py", True),
        ("modules/{op}_module{suffix}_impl.py", "modules/soft_module_impl.py", False),
        ("eval/test_inputs.py", "eval/test_inputs_py", False),
    ],
)  # fmt: skip
def test_globs(glob: str, path: str, fits: bool) -> None:
    assert bool(roles.glob_regex(glob, "soft").match(path)) == fits


def test_no_program_is_listed_twice() -> None:
    table = programs.program_table()
    groups = [set(table["programs"]), set(table["wrappers"]), set(table["without_paths"]), set(table["shells"])]
    for i, first in enumerate(groups):
        for second in groups[i + 1 :]:
            assert not first & second
    assert not set(table["wrappers"]) & set(table["interpreters"])
    assert not set(table["git"]["quiet"]) & set(table["git"]["shows"])


def test_every_command_with_files_of_its_own_is_one_of_the_bundle() -> None:
    listed = set(_COMMANDS)
    table = roles.load_roles()
    assert set(table.command_writes) <= listed
    assert table.is_work_of("tests", "modules/test_soft_module1.py", "soft")
    assert not table.is_work_of("verify", "test_soft.py", "soft")
    assert not table.is_work_of("script", "eval/evaluation_report.json", "soft")
