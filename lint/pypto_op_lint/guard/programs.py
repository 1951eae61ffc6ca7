"""What a program does to the paths on its command line: the table `programs.yaml`, and its reader."""

from __future__ import annotations

import fnmatch
import itertools
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from pypto_op_lint.guard.effects import Effect, Kind
from pypto_op_lint.guard.words import is_known

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
    """Values of the options that the table says take one."""

    def has(self, patterns: list[str]) -> bool:
        """Say whether any option (or its value) matches one of the shell patterns."""
        given = self.options + [value for values in self.values.values() for value in values]
        return any(fnmatch.fnmatchcase(option, pattern) for option in given for pattern in patterns)


def parse_command_line(arguments: list[str], valued: set[str]) -> CommandLine:
    """Split arguments into options and operands; `valued` are the options that take a value."""
    line, index, only_operands = CommandLine(), 0, False
    while index < len(arguments):
        token = arguments[index]
        index += 1
        if only_operands or not token.startswith("-") or token == "-":
            line.operands.append(token)
        elif token == "--":
            only_operands = True
        else:
            option, value = _split_option(token, valued)
            line.options.append(token if value is None else option)
            takes_next = value is None and (token in valued or _cluster_takes_value(token, valued))
            if takes_next and index < len(arguments):
                value = arguments[index]
                index += 1
                option = token if token in valued else "-" + token[-1]
            if value is not None:
                line.values.setdefault(option, []).append(value)
    return line


def _split_option(token: str, valued: set[str]) -> tuple[str, str | None]:
    name, equals, value = token.partition("=")
    if token.startswith("--") and equals:
        return name, value
    if not token.startswith("--") and len(token) > 2 and token[:2] in valued:
        return token[:2], token[2:]
    return token, None


def _cluster_takes_value(token: str, valued: set[str]) -> bool:
    return not token.startswith("--") and len(token) > 2 and "-" + token[-1] in valued


def file_effects(program: str, arguments: list[str], cwd: str | None, *, sure: bool = True) -> Iterator[Effect]:
    """Yield what a program of the table does to its operands; a program that is not in it reads them.

    Args:
        program: its name, without a folder.
        arguments: its arguments as patterns.
        cwd: the folder it runs in.
        sure: see `Effect`.
    """
    table = program_table()
    row: dict[str, Any] = table["programs"].get(program, {})
    valued = {*row.get("values", ()), *row.get("outputs", ()), *row.get("target", ()), *row.get("script", ())}
    line, folder = parse_command_line(arguments, valued), FolderTest(cwd)

    def effect(kind: Kind, target: str) -> Effect:
        return Effect(kind, target, cwd, program, sure)

    for option in row.get("outputs", ()):
        for value in line.values.get(option, ()):
            yield effect(Kind.WRITE, value)
    written, others = _split_operands(row, line)
    if (row.get("only_with") and not line.has(row["only_with"])) or line.has(row.get("not_with", [])):
        written, others = [], written + others
    into = [value for option in row.get("target", ()) for value in line.values.get(option, ())]
    if into and row.get("writes") == "last":
        written, others = into, others + written
    elif into:
        yield from (effect(Kind.WRITE, target) for target in into)
    yield from (effect(kind, target) for kind, target in _written(row, program, line, written, others, folder))
    yield from (effect(kind, target) for kind, target in _sources(row, program, line, others))
    if row.get("sources") == "linked":  # a relative link counts from the folder that it lies in
        for source, target in itertools.product(others, written):
            place = target if folder(target) else target.rpartition("/")[0]
            if place and not source.startswith("/"):
                yield effect(Kind.LINK, f"{place}/{source}")


class FolderTest:
    """Says whether a pattern names an existing folder, seen from `cwd`."""

    def __init__(self, cwd: str | None) -> None:
        self.cwd = cwd

    def __call__(self, pattern: str) -> bool:
        """Return True for a known path that is a folder now."""
        if not is_known(pattern) or (self.cwd is None and not pattern.startswith("/")):
            return False
        return os.path.isdir(os.path.join(self.cwd or "/", os.path.expanduser(pattern)))


def _split_operands(row: dict[str, Any], line: CommandLine) -> tuple[list[str], list[str]]:
    """Return (written operands, other operands)."""
    scripted = any(line.values.get(option) for option in row.get("script", ()))
    operands = line.operands[0 if scripted else row.get("operand", 0) :]
    where = row.get("writes")
    if where == "after_script":
        return (operands if scripted else operands[1:]), []
    cut = {"all": (0, None), "first": (0, 1), "second": (1, 2), "after_first": (1, None)}.get(where or "")
    if cut:
        return operands[cut[0] : cut[1]], operands[: cut[0]] + (operands[cut[1] :] if cut[1] else [])
    if where == "last" and (len(operands) > 1 or row.get("target")):
        return operands[-1:], operands[:-1]
    return [], operands


def _written(
    row: dict[str, Any],
    program: str,
    line: CommandLine,
    written: list[str],
    others: list[str],
    folder: FolderTest,
) -> Iterator[tuple[Kind, str]]:
    for target in written:
        if row.get("makes_folders"):
            yield Kind.MAKE_FOLDER, target
        elif row.get("into") and (folder(target) or target.endswith("/")):
            whole = row.get("recursive") or line.has(program_table()["recursive_options"].get(program, []))
            for source in others:
                path = _below(target, source)
                yield (Kind.WRITE_TREE if whole and path == target else Kind.WRITE), path
        elif row.get("recursive"):
            yield Kind.WRITE_TREE, target
        else:
            yield Kind.WRITE, target


def _below(target: str, source: str) -> str:
    name = source.rstrip("/").rpartition("/")[2]
    return target if name in ("", ".") or source.endswith("/") else f"{target.rstrip('/')}/{name}"


def _sources(row: dict[str, Any], program: str, line: CommandLine, others: list[str]) -> Iterator[tuple[Kind, str]]:
    table = program_table()
    how = row.get("sources")
    whole = program in table["folder_readers"] or line.has(table["recursive_options"].get(program, []))
    for source in others:
        if how == "moved":
            yield Kind.WRITE_TREE, source
        elif how == "linked":
            yield Kind.LINK, source
        else:
            yield (Kind.READ_TREE if whole else Kind.READ), source
    if whole and not others:
        yield Kind.READ_TREE, "."
