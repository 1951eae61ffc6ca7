"""The examples on the rules' classes are their tests."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from linting import lint_example

from pypto_op.vocabulary import Artifact, LintEvent
from pypto_op_lint import registry
from pypto_op_lint.api import apply_fixes
from pypto_op_lint.rule import IMPLS, Invalid, Rule, Valid

RULES = registry.all_rules()


# One test a rule, with all of its examples inside: an item of pytest costs as much as the linting of a small example.
EACH_RULE = pytest.mark.parametrize("rule", [pytest.param(rule, id=rule_id) for rule_id, rule in RULES.items()])


def _is_whole_impl(example: Valid) -> bool:
    """A valid impl that is a complete operator: every other rule must be silent on it, too."""
    return example.artifact in IMPLS and "_wrapper" in example.text and "pypto.frontend.jit" in example.text


@EACH_RULE
def test_rule_is_silent_on_its_valid_examples(rule: type[Rule], tmp_path: Path) -> None:
    for index, example in enumerate(rule.VALID):
        where = f"{rule.id}.VALID[{index}]"
        result = lint_example(tmp_path / str(index), example, [rule.id])
        if example.stage is None or example.stage in rule.stages:
            assert rule.id in result.rules, f"{where}: the rule did not run at all"
        assert result.findings == [], where


@EACH_RULE
def test_rule_reports_its_invalid_examples(rule: type[Rule], tmp_path: Path) -> None:
    for index, example in enumerate(rule.INVALID):
        _reports(rule, example, tmp_path / str(index), f"{rule.id}.INVALID[{index}]")


def _reports(rule: type[Rule], example: Invalid, scratch: Path, where: str) -> None:
    result = lint_example(scratch, example, [rule.id])
    assert {f.rule_id for f in result.findings} == {rule.id}, where
    if example.lines is not None:
        assert tuple(f.line for f in result.findings) == example.lines, where
    if example.status is not None:
        assert {f.status for f in result.findings} == {example.status}, where
    else:
        assert result.blocks is rule.severity.blocks, where
    if example.replacement is not None:
        fixed, count = apply_fixes(example.text, result.findings)
        assert count >= 1, where
        assert fixed == example.replacement, where


@EACH_RULE
def test_no_rule_blocks_another_rules_valid_impl(rule: type[Rule], tmp_path: Path) -> None:
    for index, example in enumerate(filter(_is_whole_impl, rule.VALID)):
        result = lint_example(tmp_path / str(index), replace(example, event=LintEvent.ON_WRITE), None)
        blocked = [f"{f.rule_id} {f.place} {f.message}" for f in result.blocking]
        assert blocked == [], f"{rule.id}, whole implementation {index} of its VALID"


@EACH_RULE
def test_rule_is_complete(rule: type[Rule]) -> None:
    assert len(rule.VALID) >= 2
    assert len(rule.INVALID) >= 2
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", rule.name)
    assert rule.artifacts <= set(Artifact)
    headings = re.findall(r"^    ([A-Z][a-z ]+):$", rule.__doc__ or "", flags=re.MULTILINE)
    assert headings == ["What it does", "Why", "Example", "Use instead", "Known limits"]
    for text in (rule.MESSAGE, rule.FIX_HINT):
        assert text
        assert not text.endswith(".")
