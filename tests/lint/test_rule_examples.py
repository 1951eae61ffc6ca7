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


def _cases(kind: str) -> list[object]:
    return [
        pytest.param(rule, example, id=f"{rule_id}-{kind}-{index}")
        for rule_id, rule in RULES.items()
        for index, example in enumerate(getattr(rule, kind))
    ]


def _whole_impls() -> list[object]:
    """Valid impls that are complete operators: every other rule must be silent on them, too."""
    return [
        pytest.param(example, id=f"{rule_id}-{index}")
        for rule_id, rule in RULES.items()
        for index, example in enumerate(rule.VALID)
        if example.artifact in IMPLS and "_wrapper" in example.text and "pypto.frontend.jit" in example.text
    ]


@pytest.mark.parametrize(("rule", "example"), _cases("VALID"))
def test_rule_is_silent_on_its_valid_example(rule: type[Rule], example: Valid, tmp_path: Path) -> None:
    result = lint_example(tmp_path, example, [rule.id])
    if example.stage is None or example.stage in rule.stages:
        assert rule.id in result.rules, "the rule did not run at all"
    assert result.findings == []


@pytest.mark.parametrize(("rule", "example"), _cases("INVALID"))
def test_rule_reports_its_invalid_example(rule: type[Rule], example: Invalid, tmp_path: Path) -> None:
    result = lint_example(tmp_path, example, [rule.id])
    assert {f.rule_id for f in result.findings} == {rule.id}
    if example.lines is not None:
        assert tuple(f.line for f in result.findings) == example.lines
    if example.status is not None:
        assert {f.status for f in result.findings} == {example.status}
    else:
        assert result.blocks is rule.severity.blocks
    if example.replacement is not None:
        fixed, count = apply_fixes(example.text, result.findings)
        assert count >= 1
        assert fixed == example.replacement


@pytest.mark.parametrize("example", _whole_impls())
def test_no_rule_blocks_another_rules_valid_impl(example: Valid, tmp_path: Path) -> None:
    result = lint_example(tmp_path, replace(example, event=LintEvent.ON_WRITE), None)
    assert [f"{f.rule_id} {f.place} {f.message}" for f in result.blocking] == []


@pytest.mark.parametrize("rule", [pytest.param(rule, id=rule_id) for rule_id, rule in RULES.items()])
def test_rule_is_complete(rule: type[Rule]) -> None:
    assert len(rule.VALID) >= 2
    assert len(rule.INVALID) >= 2
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", rule.name)
    assert rule.artifacts <= set(Artifact)
    headings = re.findall(r"^    ([A-Z][a-z ]+):$", rule.__doc__ or "", flags=re.MULTILINE)
    assert tuple(headings) == Rule.HEADINGS
    for text in (rule.MESSAGE, rule.FIX_HINT):
        assert text
        assert not text.endswith(".")
