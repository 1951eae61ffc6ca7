"""What a command line says that it would do to files, as far as plain words tell."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """What is done to the target of an effect."""

    WRITE = "writes"
    WRITE_TREE = "changes everything below"
    READ = "reads"
    READ_TREE = "reads everything below"
    HISTORY = "shows what git keeps of"
    STATE = "moves the state machine"
    INSIDE = "opens the state machine from inside"
    SECRET = "names the sealing key"
    COMMAND = "runs a command of this bundle"
    ENDS = "ends"


@dataclass(frozen=True)
class Effect:
    """One thing that a command would do."""

    kind: Kind  # what is done
    target: str  # the path as a pattern of `words`; for STATE the action, for COMMAND the subcommand, for ENDS whom
    cwd: str | None  # the folder that a relative target counts from, or None when a `cd` made it unknown
    program: str  # the program that does it, for the message


READING = (Kind.READ, Kind.READ_TREE)
TREES = (Kind.READ_TREE, Kind.WRITE_TREE)
