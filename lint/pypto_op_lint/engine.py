"""Runs rules over files: one pass over each tree, every rule in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from pypto_op.vocabulary import Artifact, LintEvent
from pypto_op_lint import events
from pypto_op_lint.findings import Finding
from pypto_op_lint.rule import LintContext, Rule
from pypto_op_lint.tree import Site, Tree
from pypto_op_lint.units import Unit

Rules = Mapping[str, type[Rule]]


def applicable(rules: Rules, event: LintEvent, stage: int | None) -> dict[str, type[Rule]]:
    """Return the rules that the event table and the stage let run; raise ContractError for a rule that it does not name."""
    rows = {rule_id: events.row(rule_id) for rule_id in rules}
    return {
        rule_id: rule
        for rule_id, rule in rules.items()
        if rows[rule_id].runs_at(event, stage) and (stage is None or stage in rule.stages)
    }


def lint_units(rules: Rules, context: LintContext, units: Iterable[Unit]) -> list[Finding]:
    """Return what `rules` say about `units`, each rule looking at the files it is for."""
    found: list[Finding] = []
    for unit in units:
        own = [rule for rule in rules.values() if unit.artifact in rule.artifacts]
        if own:
            found.extend(_lint_unit(own, context, unit))
    return found


def lint_operator_rules(rules: Rules, context: LintContext, touched: Iterable[Artifact]) -> list[Finding]:
    """Return what rules about the operator as a whole say; `touched` are the artefacts the run is about."""
    kinds = set(touched)
    found: list[Finding] = []
    for rule in rules.values():
        if rule.check_operator is not Rule.check_operator and kinds & rule.artifacts:
            instance = rule(context, None)
            instance.check_operator()
            found.extend(instance.findings)
    return found


def _lint_unit(rules: list[type[Rule]], context: LintContext, unit: Unit) -> list[Finding]:
    tree = unit.tree  # parses; a failure shows in `problem`
    if unit.problem is not None:
        rules = [rule for rule in rules if rule.reads_broken_files]
    instances = [rule(context, unit) for rule in rules]
    if tree is not None and unit.problem is None:
        _pass(instances, tree)
    for instance in instances:
        instance.check_file()
    return [finding for instance in instances for finding in instance.findings]


def _pass(instances: list[Rule], tree: Tree) -> None:
    """Call each rule's `visit_<NodeType>` for every live node of that type, in source order."""
    visitors: dict[str, list[Callable[[Site], None]]] = {}
    for instance in instances:
        for name in _visit_methods(type(instance)):
            visitors.setdefault(name[len("visit_") :], []).append(getattr(instance, name))
    if not visitors:
        return
    for kind in tree.types():
        methods = visitors.get(kind.__name__)
        if methods:
            for site in tree.sites(kind):
                for method in methods:
                    method(site)


_methods: dict[type[Rule], list[str]] = {}


def _visit_methods(rule: type[Rule]) -> list[str]:
    if rule not in _methods:
        _methods[rule] = [name for name in dir(rule) if name.startswith("visit_")]
    return _methods[rule]
