"""What a piece of Python names, whatever it does with it: goldens, the sealing key, git's store, the state machine.

A program can hide a name; one that stands in its text is taken at its word.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pypto_op_lint.guard.effects import Kind
from pypto_op_lint.guard.state_calls import action_of, note_state_call
from pypto_op_lint.guard.words import ANY, is_known

if TYPE_CHECKING:
    from pypto_op_lint.guard.shell import Walker

_INSIDE = re.compile(r"pypto_op\.(state|mcp)(\.\w+)*\Z")
_COMMAND_LINE = re.compile(r"pypto_op(\.cli|\.__main__)?\Z|(.*/)?pypto_op/(cli|__main__)\.py\Z")
_GIT_MODULES = {"git", "pygit2", "dulwich"}
_MAX_PATH, _MAX_NAMES = 400, 4000


def is_path(text: str) -> bool:
    """Say whether a text is known and could be a path."""
    return is_known(text) and 0 < len(text) < _MAX_PATH and not re.search(r"[\n\t]", text) and bool(re.search(r"[/.]", text))


def note_mentions(walker: Walker, tree: ast.Module, argv: list[str], *, goldens: bool) -> None:
    """Note what `tree` names; with `goldens` also the modules and files that it may read."""
    modules, strings = set(_imports(tree)), list(_strings(tree))
    named = modules | set(strings)
    for inside in sorted(name for name in named if _INSIDE.match(name)):
        walker.add(Kind.INSIDE, f"`{inside}` in Python code", "python")
    if any(_COMMAND_LINE.match(name) for name in named) and ("state" in strings or "state" in argv):
        words = argv if "state" in argv else strings
        action = action_of(words[words.index("state") + 1 :])
        if action:
            walker.add(Kind.STATE, action, "python")
    for words in _vectors(tree):
        note_state_call(walker, words)
    if {name.partition(".")[0] for name in modules} & _GIT_MODULES:
        walker.add(Kind.HISTORY, "", "python")
    for text in list(dict.fromkeys([*modules, *strings]))[:_MAX_NAMES] if goldens else ():
        _note_read(walker, text)


def _note_read(walker: Walker, text: str) -> None:
    last = re.split(r"[./]", text.removesuffix(".py"))[-1]
    if last.endswith("_golden") and "\n" not in text:
        walker.add(Kind.READ, f"{ANY}/{last}.py", "python")
    if is_path(text) and "/" in text:
        walker.add(Kind.READ, text, "python")


def _imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _strings(tree: ast.Module) -> Iterator[str]:
    """Yield the strings in order, without those that are statements by themselves."""
    said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said:
            yield node.value


def _vectors(tree: ast.Module) -> Iterator[list[str]]:
    """Yield the strings of each list and of each call's arguments: what could be a command."""
    for node in ast.walk(tree):
        items = node.elts if isinstance(node, ast.List | ast.Tuple) else node.args if isinstance(node, ast.Call) else []
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
            continue
        words = [item.value for item in items if isinstance(item, ast.Constant) and isinstance(item.value, str)]
        if any("state" in word for word in words):
            yield words
