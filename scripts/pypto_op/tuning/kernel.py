"""A kernel seen as its free choices: finds them, says which assignments the hardware allows, and writes candidates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pypto_op.mutation.program import Program
from pypto_op.tuning import constants, loops, options, tiles
from pypto_op.tuning.choice import Assignment, Choice, changed, counts
from pypto_op.tuning.rewriting import Edits, keyword, several, write

_DEBUG = "debug_options"
"""Slows a kernel and writes files: no candidate has it."""


@dataclass(frozen=True)
class Found:
    """A choice, and how a candidate that takes another option differs."""

    choice: Choice  # it
    edit: Callable[[Edits, str], None]  # adds to the edits what an option asks for


class Kernel:
    """The integrated implementation of an operator, as text.

    Args:
        bits: of the widest element that a product may have, for the memories of the cube unit.

    Raises:
        ContractError: the text does not parse, or has no kernel or no wrapper.
    """

    def __init__(self, source: str, wrapper: str, bits: int = 32) -> None:
        self.source, self._bits = source, bits
        program = Program(source, wrapper)
        self._module = program.module
        self._decorators = [call for entry in program.entries for call in options.jit_calls(entry)]
        self._tiles = tiles.find(program)
        found = [*constants.find(program), *tiles.choices(self._tiles), *loops.find(program), *options.find(program)]
        self._found: dict[str, Found] = {one[0].key: Found(*one) for one in found}
        self.choices: dict[str, Choice] = {key: one.choice for key, one in self._found.items()}

    def essence(self, assignment: Assignment) -> dict[str, str]:
        """Return the choices that have an effect and differ from the kernel's; equal ones give the same kernel."""
        known = {key: option for key, option in assignment.items() if key in self.choices}
        return changed(self.choices, known)

    def counts(self, key: str, assignment: Assignment) -> bool:
        """Say whether a choice matters under an assignment."""
        return counts(self.choices, self.choices[key], assignment)

    def faults(self, assignment: Assignment) -> list[str]:
        """Return the choices that the chip's memories and alignments do not allow, each with its arithmetic."""
        values = constants.values(self._module, {key: self.choices[key].taken(assignment) for key in self.choices})
        found: dict[str, None] = {}
        for site in self._tiles:
            if any(self._touches(site, key) for key in self.essence(assignment)):
                found |= dict.fromkeys(tiles.faults(site, self._setting(site, assignment), values, self._bits))
        return list(found)

    def _touches(self, site: tiles.Site, key: str) -> bool:
        return key in site.choices or any(key == constants.key_of(name) for name in site.names())

    def _setting(self, site: tiles.Site, assignment: Assignment) -> list[str]:
        """Return what a call that sets tiles says, argument by argument."""
        apart = site.alone and assignment.get(site.switch, "") == tiles.APART
        return [self.choices[key].taken(assignment) for key in (site.alone if apart else site.together)]

    def write(self, assignment: Assignment) -> str:
        """Return the text of the candidate; the kernel's own for an empty essence."""
        essence, edits = self.essence(assignment), Edits()
        if not essence:
            return self.source
        tied = {key for key in essence if self.choices[key].kind in tiles.KINDS}
        for site in self._tiles:
            if any(key in tied for key in site.choices):
                tiles.edit(site, self._setting(site, assignment), edits)
        for key, option in essence.items():
            if key not in tied:
                self._found[key].edit(edits, option)
        for call in self._decorators:
            edits.changes[call] = several(edits.changes.get(call), keyword(_DEBUG, ""))
        return write(self._module, edits)
