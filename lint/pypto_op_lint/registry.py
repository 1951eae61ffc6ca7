"""Finds the rules: every module of `rules/` holds exactly one."""

from __future__ import annotations

import functools
import importlib
import re
from collections.abc import Iterable
from pathlib import Path

from pypto_op.errors import ContractError
from pypto_op_lint import rules as rules_package
from pypto_op_lint.rule import Rule

_MODULE = re.compile(r"(?:ol|px)\d\d_[a-z0-9_]+\Z")


@functools.cache
def all_rules() -> dict[str, type[Rule]]:
    """Return every rule by id, in order of id."""
    found: dict[str, type[Rule]] = {}
    folder = Path(rules_package.__path__[0])
    for name in sorted(path.stem for path in folder.glob("*.py")):
        if name == "__init__":
            continue
        if not _MODULE.match(name):
            raise ContractError(
                f"{name}.py is not named as a rule, so it would never run",
                file=folder / f"{name}.py",
                remedy="name it by the rule's id in small letters, an underline and what it forbids, such as px14_no_print.py",
            )
        module = importlib.import_module(f"{rules_package.__name__}.{name}")
        classes = [
            value
            for value in vars(module).values()
            if isinstance(value, type) and issubclass(value, Rule) and value.__module__ == module.__name__
        ]
        if len(classes) != 1 or classes[0].id != name[:4].upper() or classes[0].id in found:
            wanted = name[:4].upper()
            raise ContractError(
                f"{name} must hold one rule called {wanted}",
                file=module.__file__,
                remedy=f'give it one subclass of `Rule` with `id = "{wanted}"`',
            )
        found[classes[0].id] = classes[0]
    return dict(sorted(found.items()))


def select(ids: Iterable[str] | None) -> dict[str, type[Rule]]:
    """Return the rules called `ids`, all of them for None; raise ContractError for an id that does not exist."""
    rules = all_rules()
    if ids is None:
        return rules
    wanted = [rule_id.strip().upper() for rule_id in ids if rule_id.strip()]
    unknown = [rule_id for rule_id in wanted if rule_id not in rules]
    if unknown or not wanted:
        raise ContractError(
            f"no such rule: {', '.join(unknown) or '(none named)'}",
            remedy="`pypto-op lint --explain all` lists them",
        )
    return {rule_id: rules[rule_id] for rule_id in sorted(set(wanted))}
