"""What a command would do to files, as far as it can be known before it runs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """What is done to the target of an effect."""

    WRITE = "writes"
    WRITE_TREE = "changes everything below"
    MAKE_FOLDER = "makes the folder"
    LINK = "makes a second name for"
    READ = "reads"
    READ_TREE = "reads everything below"
    GIT_TREE = "lets git change the tracked files below"
    GIT_CLEAN = "lets git remove the untracked files below"
    TEMP = "uses a temporary file of the system"
    HISTORY = "shows what git keeps of"
    STATE = "moves the state machine"
    INSIDE = "opens the state machine from inside"
    COMMAND = "runs a command of this bundle"
    OPAQUE = "cannot be understood"


@dataclass(frozen=True)
class Effect:
    """One thing that a command would do.

    Attributes:
        kind: what is done.
        target: the path as a pattern of `words`; for STATE the action, for COMMAND the subcommand, for TEMP and
            OPAQUE a word on the cause.
        cwd: the folder that a relative target counts from, or None when a `cd` made it unknown.
        program: the program that does it, for the message.
        sure: False for an effect inferred from a script's text, where an unknown target proves nothing.
    """

    kind: Kind
    target: str
    cwd: str | None
    program: str
    sure: bool = True
