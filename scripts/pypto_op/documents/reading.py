"""Read text, YAML and JSON that other people wrote: small, strict, and never a surprise.

YAML is read with the YAML 1.2 core rules, so that `1e-3` is a number, `no` is a word and a date stays text.
Refused in one line: files above 1 MB, bytes that are no UTF-8, duplicate keys, anchors and aliases (the stuff
of YAML bombs and cycles), tags, keys that are no text, and nesting deeper than 64.
"""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import yaml

from pypto_op.errors import ContractError, unreadable
from pypto_op.hashing import open_regular

MAX_BYTES = 1_000_000
MAX_DEPTH = 64
ANEW = "bring it back, or write it anew"
"""What to do about an empty file."""
_MEND = "mend it there, or bring the file back"
_ONE_KEY = "keep one of them"
_FLATTER = "write it flatter"

_YamlBase: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _CoreLoader(_YamlBase):  # type: ignore[misc]
    """PyYAML's safe loader with the scalar rules of YAML 1.2 instead of 1.1."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[str, Any]:
        """Build a dict; refuse a key that is no text, or that came before."""
        mapping: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                raise _Refused(f"the key {shown(key)} is not text", key_node.start_mark.line + 1, "put it in quotes")
            if key in mapping:
                raise _Refused(f"the key {shown(key)} occurs twice", key_node.start_mark.line + 1, _ONE_KEY)
            mapping[key] = self.construct_object(value_node, deep=deep)
        return mapping


class _Refused(Exception):
    """A construct that YAML allows and this bundle does not."""

    def __init__(self, problem: str, line: int, remedy: str) -> None:
        super().__init__(problem)
        self.problem, self.line, self.remedy = problem, line, remedy


# At most 18 digits: anything longer is no dimension, and Python refuses to convert very long ones.
_SCALARS = (
    ("tag:yaml.org,2002:null", r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
    ("tag:yaml.org,2002:bool", r"^(?:true|True|TRUE|false|False|FALSE)$", list("tTfF")),
    ("tag:yaml.org,2002:int", r"^[-+]?(?:0|[1-9][0-9]{0,17})$", list("-+0123456789")),
    (
        "tag:yaml.org,2002:float",
        r"^[-+]?(?:\.[0-9]{1,40}|[0-9]{1,40}(?:\.[0-9]{0,40})?)(?:[eE][-+]?[0-9]{1,3})?$",
        list("-+.0123456789"),
    ),
)
# The integer rule is asked first, because the float rule matches plain digits too.
for _tag, _pattern, _first in _SCALARS:
    _CoreLoader.add_implicit_resolver(_tag, re.compile(_pattern), _first)


def _construct_map(loader: Any, node: Any) -> Any:
    data: dict[str, Any] = {}
    yield data
    data.update(loader.construct_mapping(node))


_CoreLoader.add_constructor("tag:yaml.org,2002:map", _construct_map)
_CoreLoader.add_constructor("tag:yaml.org,2002:int", lambda loader, node: int(loader.construct_scalar(node)))


def read_text(path: Path | str, *, limit: int = MAX_BYTES) -> str:
    """Return the text of `path` with `\\n` line ends and without a byte order mark.

    Raises:
        ContractError: missing, no regular file, unreadable, above `limit` bytes, no UTF-8, or with NUL bytes.
    """
    path = Path(path)
    try:
        with open_regular(path) as stream:
            raw = stream.read(limit + 1)
    except OSError as error:
        raise unreadable(error, path) from None
    if len(raw) > limit:
        raise ContractError(f"larger than {limit} bytes", file=path, remedy="shorten it")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ContractError("not UTF-8", file=path, where=f"byte {error.start}", remedy="save it as UTF-8") from None
    if "\0" in text:
        raise ContractError("holds NUL bytes", file=path, remedy="save it as plain text")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def refuse_empty(text: str, file: Path | str | None) -> None:
    """Raise ContractError where the text of a file holds nothing: what is missing in it would be told one by one."""
    if not text.strip():
        raise ContractError("the file is empty", file=file, remedy=ANEW)


def parse_yaml(text: str, *, file: Path | str | None = None, first_line: int = 1) -> Any:
    """Return what `text` says, as dicts, lists, str, int, float, bool and None.

    Args:
        file: named in messages.
        first_line: line of the file on which `text` starts, for messages.

    Raises:
        ContractError: broken YAML, or one of the constructs that the module refuses.
    """

    def refuse(problem: str, line: int | None, remedy: str | None = None) -> ContractError:
        where = None if line is None else f"line {line + first_line - 1}"
        return ContractError(problem, file=file, where=where, remedy=remedy)

    if len(text.encode("utf-8", "replace")) > MAX_BYTES:
        raise refuse(f"larger than {MAX_BYTES} bytes", None, "shorten it")
    try:
        _refuse_hostile_events(text)
        return yaml.load(text, Loader=_CoreLoader)  # noqa: S506 - a subclass of the safe loader
    except _Refused as error:
        raise refuse(error.problem, error.line, error.remedy) from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        problem = str(error.problem or error.context or "broken")
        raise refuse(f"not valid YAML: {problem}", None if mark is None else mark.line + 1, _MEND) from None
    except (yaml.YAMLError, ValueError) as error:
        raise refuse(f"not valid YAML: {str(error).splitlines()[0][:160]}", None, _MEND) from None


def _refuse_hostile_events(text: str) -> None:
    depth = 0
    events: Any = yaml.parse(text, Loader=_CoreLoader)
    for event in events:
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise _Refused("anchors and aliases are not allowed", line, "write the value out")
        tag = getattr(event, "tag", None)
        if tag:
            raise _Refused(f"the tag {shown(tag)} is not allowed", line, "write the value without it")
        if isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
            depth += 1
            if depth > MAX_DEPTH:
                raise _Refused(f"nested deeper than {MAX_DEPTH} levels", line, _FLATTER)
        elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            depth -= 1


def parse_json(text: str, *, file: Path | str | None = None) -> Any:
    """Return what `text` says. Duplicate keys, NaN and Infinity, and numbers beyond float64 are refused.

    Raises:
        ContractError: broken JSON, or one of the constructs above.
    """
    try:
        return json.loads(text, object_pairs_hook=_unique_pairs, parse_constant=_refuse_constant, parse_float=_finite_float)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise ContractError(f"not valid JSON: {error.msg}", file=file, where=where, remedy=_MEND) from None
    except RecursionError:
        raise ContractError("nested too deeply", file=file, remedy=_FLATTER) from None
    except ValueError as error:
        raise ContractError(f"not valid JSON: {str(error)[:160]}", file=file, remedy=_MEND) from None


def read_yaml(path: Path | str) -> Any:
    """Read one YAML file; see `read_text` and `parse_yaml` for what is refused."""
    return parse_yaml(read_text(path), file=path)


def read_json(path: Path | str, *, limit: int = MAX_BYTES) -> Any:
    """Read one JSON file; see `read_text` and `parse_json` for what is refused."""
    text = read_text(path, limit=limit)
    refuse_empty(text, path)
    return parse_json(text, file=path)


def _unique_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise ValueError(f"the key {shown(key)} occurs twice")
            seen.add(key)
    return mapping


def _refuse_constant(word: str) -> float:
    raise ValueError(f"{word} is not a JSON number")


def _finite_float(word: str) -> float:
    value = float(word)
    if not math.isfinite(value):
        raise ValueError(f"{word[:40]} does not fit a float64")
    return value


def shown(value: object) -> str:
    """Return a value as Python writes it, cut to what a line of an error has room for."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
