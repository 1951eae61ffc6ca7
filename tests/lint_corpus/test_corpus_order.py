"""The corpus is in order: every page can be read, every rule has enough of both kinds, and the table in the docs is current."""

from __future__ import annotations

from collections import Counter

from confusion import TABLE, count_columns, table_counts
from labelled_corpus import ANY_RULE, OPERATORS, all_snippets, bases, page, page_names, snippets

from pypto_op_lint import registry

LEAST_PER_RULE = 4
LEAST_ALTOGETHER = 1900
MANY = 10
"""Blocking rules on code, which coders meet at every write, need this many of each kind."""
CODE_RULES = {
    *("OL01", "OL02", "OL03", "OL04", "OL05", "OL06", "OL07", "OL08", "OL15", "OL16", "OL25", "OL26", "OL45", "OL48"),
    *("OL51", "OL52", "OL55", "OL56", "OL57", "OL58", "OL60", "OL62"),
}


def test_a_page_is_named_after_its_rule_and_has_cases() -> None:
    for name in page_names():
        assert page(name).title in (name, ANY_RULE), name
        assert snippets(name), name


def test_expected_lines_exist() -> None:
    for snippet in all_snippets():
        text = "\n".join(content.decode("utf-8", errors="replace") for content in snippet.files.values())
        missing = [part for part in snippet.at if part not in text]
        assert not missing, f"{snippet.shown} does not contain {missing}"
        assert snippet.bad or not snippet.at, f"{snippet.shown} is good and expects a line"


def test_every_rule_has_enough_of_both_kinds() -> None:
    counts = {rule_id: Counter[str]() for rule_id in registry.all_rules()}
    for snippet in all_snippets():
        if snippet.rule != ANY_RULE:
            assert snippet.rule in counts, f"{snippet.shown} is about a rule that does not exist"
            counts[snippet.rule][snippet.label] += 1
    few = {
        rule_id: dict(count)
        for rule_id, count in counts.items()
        if min(count["good"], count["bad"]) < (MANY if rule_id in CODE_RULES else LEAST_PER_RULE)
    }
    assert not few, f"write more snippets, {LEAST_PER_RULE} of each kind, {MANY} for CODE_RULES; see tests/corpus/lint/README.md"


def test_the_corpus_is_large_and_balanced() -> None:
    count = Counter(snippet.label for snippet in all_snippets())
    assert sum(count.values()) >= LEAST_ALTOGETHER, f"the corpus shrank to {sum(count.values())} snippets"
    assert count["good"] >= count["bad"], f"{dict(count)}: a rule is judged by what it leaves alone, so add good snippets"


def test_operators_are_whole() -> None:
    for operator in OPERATORS:
        assert {"SPEC.md", "DESIGN.md", "demo_impl.py", "demo_golden.py", "test_demo.py"} <= set(bases()[operator])


def test_table_in_the_docs_counts_this_corpus() -> None:
    assert count_columns(TABLE.read_text(encoding="utf-8")) == table_counts()
