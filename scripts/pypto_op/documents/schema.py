"""Check a value against `schemas/<name>.schema.json` and say where it is wrong."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from jsonschema import Draft202012Validator, ValidationError
from jsonschema.exceptions import relevance
from referencing import Registry, Resource

from pypto_op.bundle_files import schema_path
from pypto_op.documents.reading import ANEW, shown
from pypto_op.errors import ContractError, PyptoOpError
from pypto_op.workspace import OPERATORS_DIR

_MAX_MESSAGE = 200


_NEAR = "is it "
"""How the remedy of a key begins that is nearly a known one; it explains the missing key beside it, so it is told first."""


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong in a document."""

    where: str  # the place: a path such as `modules[1].inputs[0].source`, a section, or "" for the whole
    problem: str  # what is wrong, one sentence without a full stop
    line: int | None = None  # line of the file, if known
    remedy: str = ""  # what to do about it, where the problem does not say so

    @classmethod
    def of(cls, error: PyptoOpError) -> Finding:
        """Return what a reader of the document refused, with its remedy."""
        return cls(error.where or "", f"{error.problem}; {error.remedy}" if error.remedy else error.problem)

    def one_line(self) -> str:
        """Return `line 3: place: problem; remedy`, with only the parts that are known."""
        problem = f"{self.problem}; {self.remedy}" if self.remedy else self.problem
        parts = [f"line {self.line}" if self.line else "", self.where, problem]
        return ": ".join(part for part in parts if part)

    def as_dict(self) -> dict[str, Any]:
        """Return the finding as JSON data."""
        return {"where": self.where, "problem": self.problem, "line": self.line}


def node_path(parts: Iterable[str | int]) -> str:
    """Write a path of keys and indices the way people do: `modules[1].inputs[0].source`."""
    text = ""
    for part in parts:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            shown = part if len(part) <= 60 else part[:57] + "..."
            text += f".{shown}" if text else shown
    return text


@lru_cache(maxsize=64)
def validator(name: str) -> Draft202012Validator:
    """Return the compiled validator of `schemas/<name>.schema.json`.

    That the bundle's own schemas are schemas is a test's business: a verdict's five took a tenth of a second to check.
    """
    path = schema_path(name)
    return Draft202012Validator(json.loads(path.read_text("utf-8")), registry=_registry(path.parent))


@lru_cache(maxsize=4)
def _registry(folder: Path) -> Registry[Any]:
    resources = []
    for path in sorted(folder.glob("*.schema.json")):
        resource: Resource[Any] = Resource.from_contents(json.loads(path.read_text("utf-8")))
        resources.append((path.name, resource))
    registry: Registry[Any] = Registry()
    return registry.with_resources(resources)


def findings(value: Any, name: str, *, prefix: Sequence[str | int] = ()) -> list[Finding]:
    """Return everything in `value` that breaks schema `name`, in order of place; of a wrong type nothing else is told."""
    errors = list(validator(name).iter_errors(value))
    of_wrong_type = {tuple(error.absolute_path) for error in errors if error.validator == "type"}
    telling = (error for error in errors if error.validator == "type" or tuple(error.absolute_path) not in of_wrong_type)
    found = {_finding(error, name, prefix) for error in telling}
    return sorted(found, key=lambda finding: (finding.where, not finding.remedy.startswith(_NEAR), finding.problem))


def left_to_do(value: Any, where: str = "", row: str = "") -> list[Finding]:
    """Return a finding for each text in `value` that still says TODO; `row` is the name of what it belongs to."""
    if isinstance(value, dict):
        children = [(f"{where}.{key}" if where else key, item) for key, item in value.items()]
        row = str(value.get("name", row))
    elif isinstance(value, list):
        children = [(f"{where}[{number}]", item) for number, item in enumerate(value)]
    else:
        of = f" in the row of {row}" if row and row != value else ""
        return [Finding(where, f"TODO is left{of}")] if isinstance(value, str) and "TODO" in value else []
    return [finding for place, item in children for finding in left_to_do(item, place, row)]


def check(value: Any, name: str, *, file: Path | str | None = None, prefix: Sequence[str | int] = ()) -> None:
    """Raise ContractError with the place of the first fault if `value` breaks schema `name`."""
    raise_first(findings(value, name, prefix=prefix), file=file)


def raise_first(found: Sequence[Finding], *, file: Path | str | None = None) -> None:
    """Raise ContractError for the first finding and count the others; do nothing for an empty list."""
    if not found:
        return
    first = found[0]
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    where = f"line {first.line}" if first.line else ""
    where = ": ".join(part for part in (where, first.where) if part)
    raise ContractError(first.problem + more, file=file, where=where or None, remedy=first.remedy or None)


def of_another(named: object, path: Path, where: str) -> list[Finding]:
    """Return what is wrong with a document that names another operator than the folder below `custom/` that it lies in.

    Args:
        named: the operator that the document names.
        path: of the document, in the operator's folder or in `eval/` there.
        where: the key that names it.
    """
    parent = path.resolve().parent
    folder = parent.parent if parent.name == "eval" else parent
    if folder.parent.name != OPERATORS_DIR or not isinstance(named, str) or named == folder.name:
        return []
    problem = f"{named[:64]!r} is not the name of the directory, {folder.name!r}"
    return [Finding(where, problem, remedy="name the folder as its operator, or put the file of this operator here")]


def _finding(error: ValidationError, name: str, prefix: Sequence[str | int]) -> Finding:
    error = _most_telling(error)
    parts = [*prefix, *error.absolute_path]
    return Finding(node_path(parts), _message(error), remedy=_remedy(error, name))


def _remedy(error: ValidationError, name: str) -> str:
    """Return what to do about a broken rule of schema `name`, "" where its wording says so."""
    kind, rule, value = str(error.validator), cast(Any, error.validator_value), cast(Any, error.instance)
    subschema: Any = error.schema
    if kind == "additionalProperties" and isinstance(value, dict):
        known = [key for key in subschema.get("properties", {}) if key not in value]
        near = difflib.get_close_matches(_unnamed(value, subschema), known, n=1)
        return f"{_NEAR}{shown(near[0])}?" if near else "take it out"
    if kind in _SAID:
        return _SAID[kind]
    if subschema.get("x-hint") or (kind == "type" and value is None and not error.absolute_path):
        return ""
    if kind == "type":
        return f"write {_words(rule)} there"
    return f"mend it; schemas/{name}.schema.json says what may stand there"


def _unnamed(value: Mapping[str, Any], subschema: Mapping[str, Any]) -> str:
    """Return the first key of `value` that the schema does not name; "" where it names all."""
    patterns = subschema.get("patternProperties", {})
    unnamed = set(value) - set(subschema.get("properties", {}))
    return min((key for key in unnamed if not any(re.search(pattern, key) for pattern in patterns)), default="")


def _most_telling(error: ValidationError) -> ValidationError:
    """Of an `anyOf` or `oneOf`, take the branch that got furthest: it is the one the author meant."""
    while error.context:
        deepest = max(len(child.absolute_path) for child in error.context)
        if deepest == len(error.absolute_path):
            wrong_type = [child for child in error.context if child.validator == "type"]
            if len(wrong_type) == len(error.context):
                return error
            rest = [child for child in error.context if child.validator != "type"]
            branches = {child.schema_path[0] for child in rest}
            if len(branches) > 1:
                return error
            error = min(rest, key=relevance)
        else:
            candidates = [child for child in error.context if len(child.absolute_path) == deepest]
            error = min(candidates, key=relevance)
    return error


def _message(error: ValidationError) -> str:
    text = _wording(error)
    return text if len(text) <= _MAX_MESSAGE else text[: _MAX_MESSAGE - 3] + "..."


def _wording(error: ValidationError) -> str:
    kind = str(error.validator)
    rule, value = cast(Any, error.validator_value), cast(Any, error.instance)
    subschema: Any = error.schema
    if kind == "additionalProperties":
        extra = _unnamed(value, subschema)
        return f"unknown key {shown(extra)}" if extra else error.message
    if kind == "required":
        missing = [key for key in rule if key not in value]
        return f"the key {shown(missing[0])} is missing" if missing else error.message
    hint = subschema.get("x-hint")
    if hint:
        return f"{shown(value)}: {hint}"
    if kind == "type" and value is None and not error.absolute_path:
        return f"the file is empty: there is no {_words(rule)} in it; {ANEW}"
    return _PHRASES.get(kind, lambda *_: error.message)(value, rule)


_SAID = {"required": "add it", "enum": "write one of them", "const": "write that"}
"""What to do about rules whose wording names what is wanted."""

_PHRASES: dict[str, Callable[[Any, Any], str]] = {
    "type": lambda value, rule: f"{shown(value)} is not of type {_words(rule)}",
    "enum": lambda value, rule: f"{shown(value)} is not one of {', '.join(map(str, rule))}",
    "const": lambda value, rule: f"{shown(value)} is not {shown(rule)}",
    "anyOf": lambda value, rule: f"{shown(value)} has none of the accepted forms",
    "oneOf": lambda value, rule: f"{shown(value)} has none of the accepted forms",
    "pattern": lambda value, rule: f"{shown(value)} does not look like {rule}",
    "minItems": lambda value, rule: f"needs at least {rule} item(s), has {len(value)}",
    "maxItems": lambda value, rule: f"may have at most {rule} item(s), has {len(value)}",
    "minProperties": lambda value, rule: f"needs at least {rule} key(s), has {len(value)}",
    "maxLength": lambda value, rule: f"longer than {rule} characters",
    "minLength": lambda value, rule: "empty" if not value else f"shorter than {rule} characters",
    "not": lambda value, rule: f"{shown(value)} is not allowed here",
}


def _words(value: str | list[str]) -> str:
    return value if isinstance(value, str) else " or ".join(value)
