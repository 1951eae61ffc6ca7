"""The rule reference of the review skill is made from the rules; `bundle check` tells whether it is current."""

from __future__ import annotations

from pypto_op_lint import reference, registry


def test_the_index_names_every_rule_once() -> None:
    text = reference.index()
    for rule_id, rule in registry.all_rules().items():
        assert text.count(f"| [{rule_id}](") == 1
        assert reference.first_line(rule) in text.replace("\\|", "|")
