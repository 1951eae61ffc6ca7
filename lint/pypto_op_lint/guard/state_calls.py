"""Calls of the state machine, known by their words: this command's name, `state`, an action.

Whatever program runs them, the words are the same, so programs that run programs need no table here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from pypto_op_lint.guard.effects import Kind
from pypto_op_lint.guard.programs import parse_command_line
from pypto_op_lint.guard.words import ANY, STAR

if TYPE_CHECKING:
    from pypto_op_lint.guard.shell import Walker

CALLER = re.compile(r"(?:.*[/:=])?(?:pypto-op|pypto_op(?:[./](?:cli|__main__))?(?:\.py)?)", re.DOTALL)
"""This bundle's command, under any path, and its Python forms."""

_WORD = re.compile(r"[^\s\"'`,;()\[\]{}<>|&\\]+")
_FLAGS = {"--json", "--require-token", "--help"}
_ACTION = re.compile(r"[a-z]+_[a-z_]+|init|adopt|unblock|migrate|dispatch")
_NEAR = 8
"""So many words of a program's text lie at most between the command's name and `state`."""


def action_of(rest: list[str]) -> str:
    """Return the action that the words after `state` ask for, as a pattern; empty where they only ask for help."""
    valued = {token for token in rest if token.startswith("--") and token not in _FLAGS}
    line = parse_command_line(rest, valued)
    return "" if "--help" in line.options or "-h" in line.options else (line.operands or [""])[0]


def note_state_call(walker: Walker, texts: Iterable[str], *, loose: bool = False, code: bool = False) -> None:
    """Note the state call that stands in `texts`, each one word or many.

    Args:
        loose: any program's `state ACTION` counts, since it may be this command under another name.
        code: the texts are a program, where words that belong together stand near one another.
    """
    words = [word for text in texts for word in ([text] if text in (ANY, STAR) else _WORD.findall(text))]
    for index in (i for i, word in enumerate(words) if word == "state"):
        near = words[max(0, index - _NEAR) : index + _NEAR] if code else words[:index]
        named = any(CALLER.fullmatch(word) for word in near) or (not code and any(w.startswith("--op-dir") for w in words))
        action = action_of(words[index + 1 :])
        plain = _ACTION.fullmatch(action) is not None
        if action and ((named and (plain or not code)) or (loose and index == 1 and plain)):
            walker.add(Kind.STATE, action, "pypto-op state")
            return
