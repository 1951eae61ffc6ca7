"""`kill`, `pkill` and their like: whose end the words of a command name, as far as plain words tell."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pypto_op_lint.guard.effects import Kind
from pypto_op_lint.guard.words import Node, is_known

if TYPE_CHECKING:
    from pypto_op_lint.guard.shell import Walker

_EVERYBODY = "every process"
_ABOVE = "the process above this shell"
_LEADERS = ("python", "python3", "python3.12", "pypto-op", "claude", "opencode", "node", "bun")
"""Names of the processes that lead a team."""
_LINES = (*_LEADERS, "bin/python -c runpy pypto_op.cli run", "bin/pypto-op run", "pypto_op.cli eval", "pypto-op eval",
          "pypto_op_lint.server", "hooks/server.sh", "mcp_server.py")  # fmt: skip
"""Their command lines, cut short."""
_IS_LEADER = re.compile(
    r"pypto_op\.cli\0(run|eval)\b|bin/pypto-op\0(run|eval)\b|pypto_op_lint|mcp_server|(^|/)(claude|opencode)\0"
)
_WITH_VALUE = {"-u", "-U", "-G", "-P", "-g", "-s", "-t", "-n", "--signal", "--parent", "--euid", "--uid", "--pgroup", "--session"}
_AMONG = {"-P", "-g", "-s", "--parent", "--pgroup", "--session"}
"""Options of `pkill` that choose among the processes of a parent, a group or a session."""


def note_kill(walker: Walker, program: str, rest: list[str]) -> None:
    """Note that a command would end what leads the team, or every process."""
    found = _by_number(walker, rest) if program == "kill" else _by_name(program, rest)
    if found:
        walker.add(Kind.ENDS, found, program)


def _by_number(walker: Walker, rest: list[str]) -> str:
    """Return whom `kill` would end that is no job of its shell, or ""."""
    words = list(rest)
    if words[:1] in (["-s"], ["-n"], ["--signal"]):
        signal, words = "".join(words[1:2]), words[2:]
    else:
        signal = words.pop(0)[1:] if len(words) > 1 and re.fullmatch(r"-[A-Za-z0-9]+", words[0]) else ""
    if signal in ("0", "l", "L"):
        return ""
    if _names_parent(walker.words):
        return _ABOVE
    for word in words:
        if word in ("-1", "1"):
            return _EVERYBODY
        number = word.lstrip("-")
        if number.isdecimal():
            if _IS_LEADER.search(_command_line(number)):
                return f"process {number}"
        elif re.match(r"[\w(.\[]", word) and is_known(word) and (found := _match(word, _LINES)):  # a name that `pgrep` was given
            return found
    return ""


def _by_name(program: str, rest: list[str]) -> str:
    """Return whom `pkill` or `killall` would end of those that lead a team, or ""."""
    patterns, options, skip = [], set[str](), False
    for word in rest:
        if skip or word.startswith("-"):
            options |= set() if skip else {word}
            skip = not skip and word in _WITH_VALUE
        else:
            patterns.append(word)
    if not patterns:
        return "" if options & _AMONG or not rest else _EVERYBODY
    whole = any(re.fullmatch(r"-\w*f\w*|--full", option) for option in options)
    lines = _LINES if whole and program == "pkill" else _LEADERS
    exact = program == "killall" or any(re.fullmatch(r"-\w*x\w*|--exact", option) for option in options)
    return next((hit for word in patterns if is_known(word) and (hit := _match(word, lines, exact=exact))), "")


def _match(pattern: str, lines: tuple[str, ...], *, exact: bool = False) -> str:
    try:
        wanted = re.compile(rf"(?:{pattern})\Z" if exact else pattern)
    except re.error:
        return ""
    return next((f"`{line}`" for line in lines if (wanted.match if exact else wanted.search)(line)), "")


def _command_line(number: str) -> str:
    try:
        return Path("/proc", number, "cmdline").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _names_parent(words: Any) -> bool:
    """Say whether a call's words, as the parser gives them, name `$PPID`."""
    if isinstance(words, list):
        return any(_names_parent(word) for word in words)
    if not isinstance(words, dict):
        return False
    node: Node = words
    if node.get("Type") == "ParamExp" and (node.get("Param") or {}).get("Value") == "PPID":
        return True
    return _names_parent([value for value in node.values() if isinstance(value, list | dict)])
