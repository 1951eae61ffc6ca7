"""Makes mutants: one fault each, as a text, with the line and the difference."""

from __future__ import annotations

import difflib
import random
from collections.abc import Sequence
from dataclasses import dataclass

from pypto_op.mutation.operators.base import Operator
from pypto_op.mutation.program import Program


@dataclass(frozen=True)
class Mutant:
    """A kernel with one fault."""

    id: str  # "m001", ...; numbers follow the source, then the operators' order
    operator: str  # name of the operator that planted it
    line: int  # line of the original that differs first
    diff: str  # what differs, as a unified diff without file names and context
    source: str  # the whole file


def make_mutants(program: Program, operators: Sequence[Operator]) -> list[Mutant]:
    """Return every mutant.

    Returns:
        The mutants in source order; no two have the same text, and none has the original's.
    """
    found: dict[str, tuple[str, int]] = {}
    for site in program.sites():
        for operator in operators:
            for edit in operator.edits(site):
                text = program.with_edit(site, *edit)
                if text is not None and text != program.source:
                    found.setdefault(text, (operator.name, program.line(edit[0])))
    return [
        _mutant(f"m{i:03}", name, line, program.source, text) for i, (text, (name, line)) in enumerate(found.items(), start=1)
    ]


def _mutant(identity: str, operator: str, line: int, before: str, after: str) -> Mutant:
    lines = list(difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=0))[2:]
    first = next((int(text.split()[1][1:].split(",")[0]) for text in lines if text.startswith("@@")), line)
    shown = "\n".join(text for text in lines if not text.startswith("@@"))
    return Mutant(identity, operator, first, shown, after)


def in_turns(mutants: Sequence[Mutant], seed: int) -> list[Mutant]:
    """Return the mutants in random order, the operators taking turns: each beginning of it is a fair sample."""
    order = random.Random(seed)
    heaps: dict[str, list[Mutant]] = {}
    for mutant in mutants:
        heaps.setdefault(mutant.operator, []).append(mutant)
    for heap in heaps.values():
        order.shuffle(heap)
    chosen: list[Mutant] = []
    while any(heaps.values()):
        chosen += [heap.pop() for heap in heaps.values() if heap]
    return chosen
