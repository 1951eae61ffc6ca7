"""The event table: complete, consistent with the severities, and true: what it says is stopped is stopped."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from linting import lint_example

from pypto_op.bundle_files import schema_path
from pypto_op.errors import ContractError
from pypto_op.vocabulary import LintEvent
from pypto_op_lint import engine, events, registry
from pypto_op_lint import rules as rules_package
from pypto_op_lint.rule import Rule

RULES = registry.all_rules()
TABLE = events.table()


def _moments(rule_id: str) -> list[tuple[LintEvent, int | None]]:
    """Every (event, stage) at which the table has the rule run."""
    row = events.row(rule_id)
    found: list[tuple[LintEvent, int | None]] = []
    for event in LintEvent:
        if row.runs_at(event, None):
            found += [(event, stage) for stage in (sorted(row.complete_stage) if event is LintEvent.COMPLETE_STAGE else [None])]
    return found


def test_the_table_follows_its_schema() -> None:
    schema = json.loads(schema_path("lint_events").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema).validate(json.loads(events.EVENTS_FILE.read_text(encoding="utf-8")))


def test_every_rule_has_a_row_and_every_row_a_rule() -> None:
    assert sorted(TABLE) == sorted(RULES), f"{events.EVENTS_FILE}: one row for each rule, as docs/adding-a-rule.md says"


def test_a_rule_without_a_row_is_refused_and_not_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "table", lambda: {rule_id: row for rule_id, row in TABLE.items() if rule_id != "PX01"})
    with pytest.raises(ContractError, match=r"events\.json.* no row of PX01.*copy the row of a rule on the same file"):
        engine.applicable(RULES, LintEvent.ON_WRITE, None)


@pytest.mark.parametrize(("name", "told"), [("px14-print", "not named as a rule"), ("px14_print", "one rule called PX14")])
def test_a_file_that_holds_no_rule_is_refused_and_not_skipped(
    name: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / f"{name}.py").write_text("RULE = 1\n", encoding="utf-8")
    monkeypatch.setattr(rules_package, "__path__", [str(tmp_path)])
    with pytest.raises(ContractError, match=rf"{name}\.py.*{told}.*; (name it|give it)"):
        registry.all_rules.__wrapped__()
    sys.modules.pop(f"{rules_package.__name__}.{name}", None)


@pytest.mark.parametrize("rule_id", sorted(RULES))
def test_a_row_blocks_exactly_when_the_severity_does(rule_id: str) -> None:
    row, rule = events.row(rule_id), RULES[rule_id]
    assert (row.effect == events.BLOCK) is rule.severity.blocks
    assert row.on_write or row.submit_design or row.submit_for_verify or row.complete_stage, "never runs"
    assert row.complete_stage <= rule.stages


@pytest.mark.parametrize("rule_id", sorted(RULES))
def test_a_planted_violation_is_seen_at_every_moment_of_the_table(rule_id: str, tmp_path: Path) -> None:
    """Some bad example must be reported there, and refused where the rule blocks."""
    unseen = [
        f"{event}, stage {stage}"
        for number, (event, stage) in enumerate(_moments(rule_id))
        if not _is_seen(RULES[rule_id], event, stage, tmp_path / str(number))
    ]
    assert unseen == [], f"no bad example of {rule_id} is stopped there"


def _is_seen(rule: type[Rule], event: LintEvent, stage: int | None, scratch: Path) -> bool:
    for number, example in enumerate(rule.INVALID):
        planted = replace(example, event=event, stage=stage if stage is not None else example.stage)
        if event is LintEvent.SUBMIT_FOR_VERIFY:
            planted = replace(planted, phase=example.phase or 1)
        result = lint_example(scratch / str(number), planted, [rule.id])
        if result.findings and result.blocks is rule.severity.blocks:
            return True
    return False


def test_a_damaged_table_is_told_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    damaged = tmp_path / "events.json"
    damaged.write_text('{"rules": {"OL01": {}}}', encoding="utf-8")
    monkeypatch.setattr(events, "EVENTS_FILE", damaged)
    events.table.cache_clear()
    try:
        with pytest.raises(Exception, match="event table cannot be read"):
            events.table()
    finally:
        events.table.cache_clear()
