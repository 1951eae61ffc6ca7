"""One free choice of a kernel: what it says now, and what it could say instead."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pypto_op.vocabulary import Word

Assignment = Mapping[str, str]
"""Key of a choice -> the option that is taken; a choice that is not named keeps what the kernel says."""


class Kind(Word):
    """What a choice is about."""

    VECTOR_TILE = "vector tile"
    CUBE_TILE = "cube tile"
    ROWS = "rows per step"
    UNROLL = "unroll"
    PASS_OPTION = "pass option"
    LOOP_ORDER = "loop order"
    HOIST = "load out of a loop"
    CAST = "cast"
    APART = "one setting or several"


@dataclass(frozen=True)
class Choice:
    """A place of the kernel that decides about its speed and, if all is well, about nothing else."""

    key: str  # names it, within the kernel and for every sitting of a search
    kind: Kind  # what it is about
    line: int  # of the kernel's file, where it is made
    options: tuple[str, ...]  # what it could be, as text; the first is what the kernel says now
    under: str = ""  # key of the choice that must have its second option, so that this one counts; "" for none
    unless: str = ""  # key of a choice whose second option makes this one void; "" for none

    @property
    def now(self) -> str:
        """What the kernel says."""
        return self.options[0]

    def taken(self, assignment: Assignment) -> str:
        """Return the option that an assignment takes."""
        return assignment.get(self.key, self.now)


def changed(choices: Mapping[str, Choice], assignment: Assignment) -> dict[str, str]:
    """Return the choices of an assignment that have an effect and differ from the kernel's."""
    found = {}
    for key, option in assignment.items():
        choice = choices[key]
        if option != choice.now and counts(choices, choice, assignment):
            found[key] = option
    return found


def counts(choices: Mapping[str, Choice], choice: Choice, assignment: Assignment) -> bool:
    """Say whether a choice matters under an assignment (`under`, `unless`)."""
    below = not choice.under or _second(choices[choice.under], assignment)
    return below and not (choice.unless and _second(choices[choice.unless], assignment))


def _second(choice: Choice, assignment: Assignment) -> bool:
    return choice.taken(assignment) in choice.options[1:2]
