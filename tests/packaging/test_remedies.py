"""A remedy that tells a reader to run a command of `pypto-op` tells all of it: what it works on stands there, too."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click

from pypto_op import cli

SOURCE = Path(cli.__file__).parent
RUN = re.compile(r"\brun `pypto-op ([^`]*)`")
VALUE = "something"


def test_a_remedy_that_lacks_what_its_command_works_on_is_found() -> None:
    said = (
        'raise E("x", remedy="run `pypto-op verify`")\nraise E("x", remedy=f"run `pypto-op state init --op-dir {typed(root)}`")'
    )
    assert [lacking(command) for command in commands_of(ast.parse(said))] == ["op_dir", ""]
    assert [lacking(command) for command in commands_of(ast.parse('f(remedy=to_run("state init", root))'))] == ["op_dir"]
    assert lacking("verifi OP") == "no such command"


def test_every_command_of_a_remedy_is_whole() -> None:
    wrong = [
        f"{path.relative_to(SOURCE)}: `pypto-op {command}` lacks {lacking(command)}"
        for path in sorted(SOURCE.rglob("*.py"))
        if any(sign in (text := path.read_text(encoding="utf-8")) for sign in ("remedy", "to_run"))
        for command in commands_of(ast.parse(text))
        if lacking(command)
    ]
    assert not wrong


def commands_of(tree: ast.AST) -> Iterator[str]:
    """Yield the words of each command that a remedy names, with `something` in the place of what is filled in."""
    told = {
        target.id: str(node.value.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "remedy":
            yield from RUN.findall(told.get(node.value.id, "") if isinstance(node.value, ast.Name) else _text(node.value))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "to_run":
            words = node.args[0]
            yield f"{told.get(words.id, words.id) if isinstance(words, ast.Name) else _text(words)} {VALUE}"


def lacking(command: str) -> str:
    """Return which parameters a command needs and does not have, "" for none."""
    words, found = command.split(), cli.root
    while isinstance(found, click.Group) and words:
        inner = found.get_command(click.Context(found), words.pop(0))
        if inner is None:
            return "no such command"
        found = inner
    takers = {name for one in found.params if isinstance(one, click.Option) and not one.is_flag for name in one.opts}
    plain = [word for at, word in enumerate(words) if word[0] != "-" and not (at and words[at - 1] in takers)]
    needed = [one for one in found.params if one.required]
    return ", ".join(
        str(one.name)
        for one in needed
        if (not plain if isinstance(one, click.Argument) else not any(name in words[:-1] for name in one.opts))
    )


def _text(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) for part in node.values)
    if isinstance(node, ast.IfExp):
        return f"{_text(node.body)} {_text(node.orelse)}"
    return VALUE
