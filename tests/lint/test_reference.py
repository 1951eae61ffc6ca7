"""The rule reference of the review skill is made from the rules, and is current."""

from __future__ import annotations

from pathlib import Path

from pypto_op.bundle_files import bundle_root
from pypto_op_lint import reference, registry


def test_the_committed_reference_is_current() -> None:
    assert reference.stale(bundle_root()) == [], "run `python -m pypto_op_lint.reference`"


def test_staleness_is_noticed(tmp_path: Path) -> None:
    reference.write(tmp_path)
    assert reference.stale(tmp_path) == []
    folder = tmp_path / reference.FOLDER
    (folder / "lint-rules" / "OL48.md").write_text("edited by hand", encoding="utf-8")
    (folder / "lint-rules" / "OL99.md").write_text("a rule that is gone", encoding="utf-8")
    (folder / "lint-rules.md").unlink()
    assert {path.name for path in reference.stale(tmp_path)} == {"OL48.md", "OL99.md", "lint-rules.md"}
    reference.write(tmp_path)
    assert reference.stale(tmp_path) == []


def test_the_index_names_every_rule_once() -> None:
    text = reference.index()
    for rule_id, rule in registry.all_rules().items():
        assert text.count(f"| [{rule_id}](") == 1
        assert reference.first_line(rule) in text.replace("\\|", "|")
