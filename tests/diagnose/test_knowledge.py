"""Every entry is a mistake that really happens: its kernel is run, found from what it really says, mended and run again."""

from __future__ import annotations

import pytest

from pypto_op.diagnose import knowledge
from pypto_op.diagnose.kernel_text import read_kernel
from pypto_op.diagnose.knowledge import FOLDER, Entry
from pypto_op.diagnose.log_text import parse_log
from pypto_op.diagnose.search import asked_rules, diagnose
from pypto_op.documents import schema
from pypto_op.documents.reading import read_yaml
from pypto_op_lint.registry import all_rules

ENTRIES = [entry for entry in knowledge.entries() if entry.example]


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.yaml")), ids=lambda path: path.stem)
def test_an_entry_keeps_to_the_schema_and_names_rules_that_exist(path):
    data = read_yaml(path)
    schema.check(data, "knowledge_entry", file=path)
    assert data["id"] == path.stem
    asked = {rule for row in data["evidence"] for rule in (*row.get("rules", ()), *row.get("not_rules", ()))}
    assert {*data["rules"], *asked} <= all_rules().keys()
    for step in data["example"]["mend"]:
        assert step["replace"] != step["by"]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.id)
def test_the_rules_that_are_named_report_the_mistake(entry: Entry):
    """`diagnose` prints them, and who asks `lint --explain` for a rule that is about something else loses a way."""
    assert entry.example
    assert set(entry.rules) <= read_kernel(entry.example.mistake, frozenset(entry.rules)).findings.keys()


def test_every_mending_step_changes_something():
    for path in FOLDER.glob("*.yaml"):
        example = read_yaml(path)["example"]
        text = example["mistake"]
        for step in example["mend"]:
            assert step["replace"] in text, (path.name, step)
            text = text.replace(step["replace"], step["by"])


@pytest.mark.sim
@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.id)
def test_the_real_mistake_is_found_and_its_mending_works(entry: Entry, operator, run_example):
    assert entry.example
    outcome, said = run_example(entry.example, entry.example.mistake)
    kernel = read_kernel(operator.impl, asked_rules())
    log = parse_log(said)
    found = diagnose(log, kernel)
    assert [hit.entry.id for hit in found.hits][:1] == [entry.id], said[:3000]
    hit = found.hits[0]
    assert hit.seen and (hit.from_log or outcome == "ok"), "a run that failed must be explained by what it said"
    if hit.line:
        assert kernel.line(hit.line).strip(), "the line that is blamed exists"
    if hit.from_log:
        alone = diagnose(log)
        named = [other.entry.id for other in alone.hits] + list(alone.undecided)
        assert entry.id in named, "without the kernel it is found too, or asked about"

    outcome, said = run_example(entry.example, entry.example.mended)
    assert outcome == "ok", said[:3000]
    mended = diagnose(parse_log(said), read_kernel(operator.impl, asked_rules()))
    assert entry.id not in [hit.entry.id for hit in mended.hits]
