"""What a program does to the paths on its command line: the table `programs.yaml`, and its reader."""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from pypto_op_lint.guard.effects import Effect, Kind
from pypto_op_lint.guard.words import ANY, LISTED, STAR

TABLE = Path(__file__).with_name("programs.yaml")


@lru_cache(maxsize=1)
def program_table() -> dict[str, Any]:
    """Return the table as it is written; `schemas/programs.schema.json` describes it."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    table: dict[str, Any] = yaml.load(TABLE.read_text(encoding="utf-8"), Loader=loader)
    return table


@dataclass
class CommandLine:
    """The options and operands of one program call."""

    options: list[str] = field(default_factory=list)
    operands: list[str] = field(default_factory=list)
    values: dict[str, list[str]] = field(default_factory=dict)
    """Values of the options that take one."""

    def has(self, patterns: list[str]) -> bool:
        """Say whether any option matches one of the shell patterns."""
        return any(fnmatch.fnmatchcase(option, pattern) for option in self.options for pattern in patterns)

    def given(self, options: list[str]) -> list[str]:
        """Return the values of these options."""
        return [value for option in options for value in self.values.get(option, ())]


def parse_command_line(arguments: list[str], valued: set[str]) -> CommandLine:
    """Split arguments into options and operands; `valued` are the options that take a value."""
    line, left = CommandLine(), list(arguments)
    while left:
        token = left.pop(0)
        if token == "--":
            line.operands += left
            break
        if not token.startswith("-") or token == "-":
            line.operands.append(token)
            continue
        name, equals, value = token.partition("=")
        if token.startswith("--") and equals:
            option, token = name, name
        elif not token.startswith("--") and len(token) > 2 and token[:2] in valued:
            option, value = token[:2], token[2:]
        else:  # the last letter of a cluster may take the next word
            option = token if token in valued else "-" + token[-1]
            value = left.pop(0) if left and (token in valued or (not token.startswith("--") and option in valued)) else ""
        line.options.append(token)
        if value:
            line.values.setdefault(option, []).append(value)
    return line


def file_effects(program: str, arguments: list[str], cwd: str | None) -> Iterator[Effect]:
    """Yield what a program of the table does to its operands; a program that is not in it reads them.

    Args:
        program: its name, without a folder.
        arguments: its arguments as patterns.
        cwd: the folder it runs in.
    """
    table = program_table()
    runs = any(program in table[key] for key in ("shells", "wrappers", "interpreters")) or program.startswith("python")
    row: dict[str, Any] = table["programs"].get(program, {"folders": not runs})
    named = [option for key in ("values", "outputs", "target", "script", "base", "only", "lists") for option in row.get(key, ())]
    line = parse_command_line(arguments, set(named))
    scripted = any(option in line.values for option in row.get("script", ()))
    operands = line.operands[0 if scripted else row.get("skip", 0) :]
    targets = line.given(row.get("target", []))
    written, others = _split(row, line, operands, targets)
    for base in line.given(row.get("base", [])):
        others += [os.path.join(base, path) for path in others]
    found = [(Kind.WRITE, path) for path in line.given(row.get("outputs", []))]
    found += [(Kind.WRITE_TREE if row.get("recursive") else Kind.WRITE, path) for path in written]
    searches = program in table["folder_searchers"] or line.has(row.get("searches_with", []))
    if searches and all(path == LISTED for path in others):  # a list may be empty
        others = [*others, "."]
    filters = [_glob(value) for value in line.given(row.get("only", [])) if not value.startswith("!")]
    if searches and filters:
        found += [(Kind.READ, f"{path}/{ANY}{name}") for path in others for name in filters]
    else:
        tree = searches or line.has(row.get("folders_with", [])) or row.get("folders")
        kind = Kind.WRITE_TREE if row.get("sources") == "moved" else Kind.READ_TREE if tree else Kind.READ
        found += [(kind, path) for path in others]
    if row.get("sources") == "linked":  # a relative link counts from the folder that it lies in
        found += [
            (Kind.READ_TREE, f"{place}/{source}") for source in others for path in written for place in (path, f"{path}/..")
        ]
    else:  # `--file=x` names a path as well
        found += [
            (Kind.READ, v) for o in line.values if o.startswith("--") and o not in row.get("only", ()) for v in line.values[o]
        ]
    if line.has(row.get("lists", [])):
        found.append((Kind.READ, LISTED))
    yield from (Effect(kind, path, cwd, program) for kind, path in found)


def _glob(text: str) -> str:
    return re.sub(r"[*?]|\[[^\]]*\]", STAR, text)


def _split(row: dict[str, Any], line: CommandLine, operands: list[str], targets: list[str]) -> tuple[list[str], list[str]]:
    """Return the operands that are written, and the others."""
    where = row.get("writes")
    if targets:
        return targets, operands
    if not where or line.has(row.get("not_with", [])) or (row.get("only_with") and not line.has(row["only_with"])):
        return [], operands
    if where == "all":
        return operands, []
    if where == "first":
        return operands[:1], operands[1:]
    cut = 1 if where == "second" else len(operands) - 1
    return (operands[cut:], operands[:cut]) if len(operands) > 1 else ([], operands)
