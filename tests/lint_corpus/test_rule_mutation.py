"""Mutation check of the rules: a rule whose method does nothing must be noticed by the corpus or by the rule's own examples."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from labelled_corpus import Snippet, reports, snippets
from linting import lint_example

from pypto_op_lint import registry
from pypto_op_lint.rule import Invalid, Rule

HOOKS = ("check_file", "check_operator")


def _mutants() -> Iterator[object]:
    """Every method through which the engine enters a rule, and the switch for missing files."""
    for rule_id, rule in registry.all_rules().items():
        names = [name for name in vars(rule) if name.startswith("visit_") or name in HOOKS]
        names += ["missing_is_fault"] if rule.missing_is_fault else []
        for name in names:
            yield pytest.param(rule, name, id=f"{rule_id}-{name}")


def _witnesses(rule: type[Rule]) -> Iterator[Callable[[Path], bool]]:
    """Everything that the rule must report: its page's bad snippets, then its own invalid examples."""
    for snippet in snippets(rule.id):
        if snippet.bad and not snippet.known_limit:
            yield _of_snippet(snippet)
    for example in rule.INVALID:
        yield _of_example(rule.id, example)


def _of_snippet(snippet: Snippet) -> Callable[[Path], bool]:
    return lambda scratch: reports(snippet, scratch)


def _of_example(rule_id: str, example: Invalid) -> Callable[[Path], bool]:
    return lambda scratch: any(f.rule_id == rule_id for f in lint_example(scratch, example, [rule_id]).findings)


def test_there_are_mutants_of_every_rule() -> None:
    mutated = {mutant.values[0].id for mutant in _mutants()}  # type: ignore[attr-defined]
    assert mutated == set(registry.all_rules())


@pytest.mark.slow  # the tests themselves are tested: every rule again, once for each of its methods
@pytest.mark.parametrize(("rule", "name"), list(_mutants()))
def test_an_emptied_method_is_noticed(rule: type[Rule], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, reported in enumerate(_witnesses(rule)):
        monkeypatch.undo()
        if not reported(tmp_path / f"{number}-whole"):
            continue  # caught by another rule; test_corpus.py answers for that
        emptied: object = False if name == "missing_is_fault" else lambda self, *sites: None
        monkeypatch.setattr(rule, name, emptied)
        if not reported(tmp_path / f"{number}-emptied"):
            return
    pytest.fail(f"{rule.id} says the same when {name} does nothing: no bad snippet or example needs it")
