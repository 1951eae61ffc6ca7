"""Calls of the state machine in any words: an argument vector, a quoted command, a string of another language.

Whatever program runs them, the words are the same: this command's name, `state`, an action. So programs that run
programs need no table here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from pypto_op_lint.guard.effects import Kind
from pypto_op_lint.guard.programs import parse_command_line, program_table
from pypto_op_lint.guard.words import ANY, STAR

if TYPE_CHECKING:
    from pypto_op_lint.guard.shell import Walker

CALLER = re.compile(r"(?:.*[/:=])?(?:pypto-op|pypto_op(?:[./](?:cli|__main__))?(?:\.py)?)", re.DOTALL)
"""This bundle's command, under any path, and its Python forms."""

_WORD = re.compile(r"[^\s\"'`,;()\[\]{}<>|&\\]+")
_FLAGS = {"--json", "--require-token", "--help"}
_ACTION = re.compile(r"[a-z]+_[a-z_]+|init|adopt|unblock|migrate|dispatch")


def action_of(rest: list[str]) -> str:
    """Return the action that the words after `state` ask for, as a pattern; empty where they only ask for help."""
    valued = {token for token in rest if token.startswith("--") and token not in _FLAGS}
    line = parse_command_line(rest, valued)
    return "" if "--help" in line.options or "-h" in line.options else (line.operands or [""])[0]


def state_action(words: list[str], *, loose: bool = False) -> str:
    """Return the action of a state call among `words`, or an empty string; `loose` for any program's `state ACTION`."""
    for index, word in enumerate(words):
        if word != "state":
            continue
        before, rest = words[:index], words[index + 1 :]
        named = any(CALLER.fullmatch(token) for token in before) or any(t.startswith("--op-dir") for t in words)
        action = action_of(rest)
        if action and (named or (loose and index == 1 and _ACTION.fullmatch(action))):
            return action
    return ""


def note_state_call(walker: Walker, texts: Iterable[str], *, loose: bool = False) -> None:
    """Note the state call that stands in `texts`, each one word or many."""
    words = [word for text in texts for word in _words(text)]
    action = state_action(words, loose=loose)
    if action:
        walker.add(Kind.STATE, action, "pypto-op state")


def prints_only(program: str) -> bool:
    """Say whether a program's words are text that it prints or looks for, not something that it could run."""
    return program in program_table()["text_only"]


def _words(text: str) -> list[str]:
    if text in (ANY, STAR):
        return [text]
    return _WORD.findall(text)
