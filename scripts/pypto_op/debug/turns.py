"""Finds a loop of a kernel that takes its turns in the opposite order of the golden's."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from pypto_op.debug.dump_files import Step
from pypto_op.debug.matching import Golden, says_little

_LEAST = 2
"""Pairs of turns, of all operations together, of which an order can be told."""


def walked_backwards(steps: Sequence[Step], golden: Golden) -> str:
    """Return the index of a loop whose turns go against the golden's, "" where none does.

    An operation of the kernel tells it whose results are, turn by turn, those of one line of the golden: the golden's tensors are
    numbered in the order in which it made them.
    """
    turns: dict[tuple[object, ...], list[tuple[int, int]]] = {}
    for step in steps:
        loops = [(name, turn) for name, turn in step.loops if not name.startswith("loop_idx_")]
        if not loops or step.moves or step.line is None or says_little(value := step.tensor()):
            continue
        made = [match for match in golden.matches(value) if match.line]
        if len(made) == 1:
            key = (loops[0][0], tuple(loops[1:]), step.line, step.opcode, made[0].line)
            turns.setdefault(key, []).append((loops[0][1], made[0].tensor))
    ways: dict[str, list[bool]] = {}
    for (index, *_), told in turns.items():
        numbers = [number for _, number in sorted(told)]
        ways.setdefault(str(index), []).extend(before < after for before, after in pairwise(numbers) if before != after)
    return next((index for index, rising in ways.items() if len(rising) >= _LEAST and not any(rising)), "")
