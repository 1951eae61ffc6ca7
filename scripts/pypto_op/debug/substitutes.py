"""Lists edits that correct a mixed-up name: another value of the same turn takes an operand's place, or two are exchanged.

A slip of a name makes a kernel compute with the wrong one of its own values: v for k, the gain for the shift, a tile before its
norm. What would have been meant is there, in the same turn, so each value of a fitting shape is tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import torch

from pypto_op.debug.changes import Change, Group, Kind
from pypto_op.debug.dump_files import Step
from pypto_op.debug.matching import says_little
from pypto_op.debug.rerun import Edit, Rule

_MOST_VALUES = 12
"""Values that are tried for one operand, the nearest before it first."""

_BESIDE: Mapping[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "multiplied by": torch.mul, "divided by": torch.div, "less": torch.sub, "added to": torch.add,
}  # fmt: skip


class AtHand:
    """The values that a line could have named, turn by turn.

    Args:
        value: gives a step's result in float64.
        inputs: the arguments; a kernel may forget to read one.
    """

    def __init__(self, steps: Sequence[Step], value: Callable[[Step], torch.Tensor], inputs: Sequence[torch.Tensor] = ()) -> None:
        self._value, self._inputs = value, inputs
        self._by_number = {step.number: step for step in steps}
        self._turns: dict[tuple[tuple[str, int], ...], list[Step]] = {}
        self._names: dict[int, tuple[object, ...]] = {}
        self._peers: dict[tuple[object, ...], Step] = {}
        count: dict[tuple[object, ...], int] = {}
        for step in steps:
            if step.opcode == "ASSEMBLE" or (step.line is None and not step.given):
                continue
            self._turns.setdefault(step.loops, []).append(step)
            turn = (step.line, step.opcode, step.loop, step.loops)
            count[turn] = count.get(turn, -1) + 1
            self._names[step.number] = (step.line, step.opcode, step.loop, count[turn])
            self._peers.setdefault((self._names[step.number], step.loops), step)

    def replaced(self, group: Group, at: int, operands: Mapping[int, Sequence[int]]) -> Iterator[Change]:
        """Yield the changes that take another value for operand `at`.

        Args:
            group: runs of one operation.
            at: which operand.
            operands: numbers of each run's operands.
        """
        own = self._by_number[operands[group.steps[0].number][at]]
        for value in self._unread(own):
            edits = {run.number: _taking(value, at) for run in group.steps}
            yield Change(Kind.OTHER, group.steps, "made with another argument", edits, at, call=group.call)
        for other in self._fitting(group.steps[0], own.number, same=True):
            given = self._of_each_run(group, other, at, operands, same=True)
            if given is not None:
                edits = {number: _taking(one, at) for number, one in given.items()}
                why = f"made with {_told(other)}"
                yield Change(
                    Kind.OTHER,
                    group.steps,
                    why,
                    edits,
                    at,
                    call=group.call,
                    known_in=self._lines(other),
                    origin=self._origin(own),
                )

    def beside(self, group: Group, at: int, operands: Mapping[int, Sequence[int]]) -> Iterator[Change]:
        """Yield the changes that put another value to operand `at`, by an operation that was left out."""
        for other in self._fitting(group.steps[0], operands[group.steps[0].number][at], same=False):
            given = self._of_each_run(group, other, at, operands, same=False)
            for words, op in _BESIDE.items() if given is not None else ():
                edits = {number: _joined(one, at, op) for number, one in (given or {}).items()}
                yield Change(Kind.MISSING, group.steps, f"made of an operand {words} {_told(other)}", edits, at, call=group.call)

    def exchanged(self, group: Group, at: int, operands: Mapping[int, Sequence[int]]) -> Iterator[Change]:
        """Yield the changes that exchange operand `at`, wherever it is used, with another value."""
        own = self._by_number[operands[group.steps[0].number][at]]
        for other in self._fitting(group.steps[0], own.number, same=True):
            if own.line is None or other.line is None or own.number not in self._names:
                continue
            edits: dict[int, Edit] = {}
            for run in group.steps:
                one, two = self._peer(own, run), self._peer(other, run)
                if one is None or two is None or one.valid != two.valid or one.number in two.parents or two.number in one.parents:
                    break
                edits |= {one.number: _being(self._value(two)), two.number: _being(self._value(one))}
            else:
                why = f"made with line {own.line} and line {other.line} exchanged"
                change = Change(Kind.EXCHANGED, group.steps, why, edits, at, call=group.call)
                yield replace(change, others=(own, other))

    def _lines(self, step: Step) -> tuple[int, ...]:
        """Return the lines that make a value, or use it in its turn."""
        users = [one.line for one in self._turns.get(step.loops, ()) if step.number in one.parents]
        return tuple(line for line in (step.line, *users) if line is not None)

    def _origin(self, step: Step) -> int | None:
        """Return the line that made a value, or what it was moved from."""
        while step.line is None and step.moves and len(step.parents) == 1:
            step = self._by_number[step.parents[0]]
        return step.line

    def _unread(self, own: Step) -> Iterator[torch.Tensor]:
        """Yield the arguments of an argument's size that the kernel may have meant in its place."""
        if own.given and not own.parents:
            value = self._value(own)
            for one in self._inputs:
                if one.numel() == value.numel() and not bool(one.reshape(value.shape).to(value.dtype).equal(value)):
                    yield one.reshape(value.shape).to(value.dtype)

    def _fitting(self, step: Step, operand: int, *, same: bool) -> list[Step]:
        """Return the values of a step's turn, and of the loops around it, that an operand could be."""
        own = self._by_number[operand]
        found: list[Step] = []
        for loops, there in self._turns.items():
            if step.loops[len(step.loops) - len(loops) :] == loops:
                found += [one for one in there if one.number < step.number and one.number != operand]
        found = [one for one in found if _fits(one.valid, own.valid, same) and not says_little(self._value(one))]
        apart: list[Step] = []
        for one in sorted(found, key=lambda one: -one.number):
            if not any(known.valid == one.valid and bool(self._value(known).equal(self._value(one))) for known in (own, *apart)):
                apart.append(one)
        return apart[:_MOST_VALUES]

    def _of_each_run(
        self, group: Group, other: Step, at: int, operands: Mapping[int, Sequence[int]], *, same: bool
    ) -> dict[int, torch.Tensor] | None:
        """Return the value for each run of a group, None where one has none."""
        given: dict[int, torch.Tensor] = {}
        for run in group.steps:
            peer = self._peer(other, run)
            own = self._by_number[operands[run.number][at]] if at < len(operands.get(run.number, ())) else None
            if peer is None or own is None or not _fits(peer.valid, own.valid, same):
                return None
            given[run.number] = self._value(peer)
        return given

    def _peer(self, step: Step, run: Step) -> Step | None:
        """Return what a step is in the turn of another run of a line."""
        if step.given:
            return step
        loops = run.loops[len(run.loops) - len(step.loops) :]
        return self._peers.get((self._names[step.number], loops)) if len(step.loops) <= len(run.loops) else None


def _fits(one: Sequence[int], own: Sequence[int], same: bool) -> bool:
    if same:
        return tuple(one) == tuple(own)
    return len(one) == len(own) and all(a in (1, b) for a, b in zip(one, own, strict=True))


def _told(step: Step) -> str:
    return f"the {step.opcode} of line {step.line}" if step.line is not None else "another argument"


def _taking(value: torch.Tensor, at: int) -> Edit:
    return lambda given, rule: rule(*(value if at == number else one for number, one in enumerate(given)))


def _joined(value: torch.Tensor, at: int, op: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> Edit:
    return lambda given, rule: rule(*(op(one, value) if at == number else one for number, one in enumerate(given)))


def _being(value: torch.Tensor) -> Edit:
    def be(given: Sequence[torch.Tensor], rule: Rule) -> torch.Tensor:
        return value

    return be
