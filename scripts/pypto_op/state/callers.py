"""Whether a person or an agent called: found in the processes above this one, not in what the caller says.

A harness marks the environment of whatever its agents start, and it stands itself among the processes above. So
a pseudo-terminal that an agent makes, or a variable that it unsets, changes nothing: the mark is still above.

Limit, said plainly: a process that leaves the harness's tree with an empty environment, or that types into a
terminal which a person opened, looks like that person.
"""

from __future__ import annotations

import functools
import os
import re
from dataclasses import dataclass
from pathlib import Path

from pypto_op.proof.key import KEY_ENV

HARNESS_VARIABLES = (
    "CLAUDECODE", "CLAUDE_CODE_SESSION_ID", "AI_AGENT", "OPENCODE", "CODEX_SANDBOX", "GEMINI_CLI", "CURSOR_AGENT",
)  # fmt: skip
"""Set by a harness for what its agents start, and by nobody else. Settings that people keep in a profile are none."""

_HARNESS_PROGRAMS = {"claude", "opencode", "codex", "gemini"}
_INTERPRETERS = re.compile(r"(node|bun|deno|perl|ruby|tclsh|python[\d.]*)\Z")
_TERMINAL_MAKERS = {"script", "expect", "socat", "unbuffer", "setsid", "nohup"}
"""With the interpreters: programs that can make a terminal, and that no person's session begins with."""


@dataclass(frozen=True)
class Harness:
    """The topmost sign of a harness: what it is, and which key file the account uses there."""

    sign: str
    key: str | None


def harness_above() -> Harness | None:
    """Return the harness that this process runs under, or None."""
    found = None
    own = {name: os.environ[name] for name in (*HARNESS_VARIABLES, KEY_ENV) if name in os.environ}
    for name, command, environment in [("", [], own), *_processes()]:
        mark = next((variable for variable in HARNESS_VARIABLES if environment.get(variable)), None)
        program = next((word for word in _programs(name, command) if word in _HARNESS_PROGRAMS), None)
        if mark or program:
            found = Harness(program or f"{mark} is set", environment.get(KEY_ENV))
    return found


def agent_in_shell() -> str | None:
    """Return the sign of a harness above this process where it works for the same account, or None.

    A process that was given a key of its own moves states that the account's key does not open: a test's.
    """
    harness = harness_above()
    return harness.sign if harness and harness.key == os.environ.get(KEY_ENV) else None


def no_person() -> str | None:
    """Return why the terminal that this process stands at is no person's, or None."""
    harness = harness_above()
    if harness:
        return harness.sign
    above = _processes()[1:]
    if not above:
        return None
    program = next(iter(_programs(*above[-1][:2])), "")
    if program in _TERMINAL_MAKERS or _INTERPRETERS.match(program):
        return f"a {program} without a session made it"
    return None


@functools.cache
def _processes() -> tuple[tuple[str, list[str], dict[str, str]], ...]:
    """Return name, command line and first environment of this process and those above it, without the first of all.

    Looked up once: what stood above a process at its first call is what it came from.
    """
    import psutil

    own = psutil.Process()
    found = []
    for process in [own, *own.parents()]:
        if process.pid == 1:
            break
        try:
            facts = process.as_dict(["name", "cmdline", "environ"], ad_value=None)
        except psutil.NoSuchProcess:  # it ended meanwhile; what stands above it does not change
            continue
        found.append((facts["name"] or "", facts["cmdline"] or [], facts["environ"] or {}))
    return tuple(found)


def _programs(name: str, command: list[str]) -> list[str]:
    """Return the names that a process goes by: its program's, and its script's where that is an interpreter."""
    words = [Path(word).name.removesuffix(".exe") for word in [*command[:1], name] if word]
    if words and _INTERPRETERS.match(words[0]):
        scripts = [word for word in command[1:4] if not word.startswith("-")]
        words += ["claude" if "claude-code" in word else Path(word).name for word in scripts]
    return words
