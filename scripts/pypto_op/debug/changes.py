"""Lists edits of one line of a kernel, and what its operations would compute after each; `hypotheses` tries them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

import torch

from pypto_op.debug.dump_files import Step, slices
from pypto_op.debug.matching import kind_of
from pypto_op.debug.rerun import BINARY, NARROW, UNARY, Edit, Rule

SCALED = ("MULS", "DIVS", "ADDS", "SUBS")
_OTHER: Mapping[str, str] = {
    "ADD": "SUB", "SUB": "ADD", "MUL": "DIV", "DIV": "MUL", "MAXIMUM": "MINIMUM", "MINIMUM": "MAXIMUM",
    "SQRT": "RSQRT", "RSQRT": "SQRT",
}  # fmt: skip
_MOST_PLACES = 20


class Kind(IntEnum):
    """What is changed; of two changes that explain the same the first kind is the likelier."""

    ROUNDING = 0
    OPERANDS = 1
    PLACE = 2
    OPERATION = 3
    NUMBER = 4
    STEP = 5
    EXCHANGED = 6
    OTHER = 7
    MISSING = 8
    FACTOR = 9


@dataclass(frozen=True)
class Change:
    """A change of a line."""

    kind: Kind  # what is changed
    steps: tuple[Step, ...]  # the runs of the operation that it changes, first ones first
    why: str  # how the operation differs where all comes out right; no number is in it
    edits: Mapping[int, Edit]  # what each run computes then, by number
    operand: int = -1  # which operand's way into the operation gets a factor or a term; -1: the result
    frontier: bool = False  # all operands of the operation are right as they are
    known: bool = False  # the number that it asks for is one that the golden uses
    # it is one over such a number, so something is multiplied that should not be, and the step's own result is right
    undone: bool = False
    # which of the runs in a turn is changed, and of how many; None where all runs of all loops are
    call: tuple[int, int] | None = None
    others: tuple[Step, ...] = ()  # the two values that are exchanged
    known_in: tuple[int, ...] = ()  # lines that make or use the value that is taken
    origin: int | None = None  # the line that made the operand in whose place another value is taken, None where none did


@dataclass(frozen=True)
class Group:
    """Runs of one operation of a line, first ones first; `call` as in `Change`."""

    steps: tuple[Step, ...]
    call: tuple[int, int] | None = None


def groups(steps: Sequence[Step]) -> list[Group]:
    """Return the runs of each operation of a line: all of its runs, and those of each call of a helper apart."""
    lines: dict[tuple[int, str], list[Step]] = {}
    calls: dict[tuple[int, str, tuple[str, ...]], dict[int, list[Step]]] = {}
    count: dict[tuple[object, ...], int] = {}
    for step in steps:
        if step.line is None or (step.moves and step.opcode != "VIEW"):
            continue
        turn = (step.line, step.opcode, step.loops, step.function)
        ordinal = count[turn] = count.get(turn, -1) + 1
        lines.setdefault((step.line, step.opcode), []).append(step)
        within = (step.loop, *(name for name, _ in step.loops))
        calls.setdefault((step.line, step.opcode, within), {}).setdefault(ordinal, []).append(step)
    found = [Group(tuple(runs)) for runs in lines.values()]
    for key, ordinals in calls.items():
        if len(ordinals) > 1 or len(ordinals[0]) < len(lines[key[:2]]):
            found += [Group(tuple(runs), (at, len(ordinals))) for at, runs in ordinals.items()]
    return sorted(found, key=lambda group: (group.steps[0].number, len(group.steps)))


def of_one_number(steps: Sequence[Step]) -> list[Group]:
    """Return the operations of several lines that take one and the same number: a constant, or what the wrapper hands over."""
    same: dict[tuple[str, float], list[Step]] = {}
    for step in steps:
        if step.line is not None and step.opcode in SCALED and step.scalar is not None:
            same.setdefault((step.opcode, step.scalar), []).append(step)
    return [Group(tuple(runs)) for runs in same.values() if len({one.line for one in runs}) > 1]


def plain(group: Group) -> Iterator[Change]:
    """Yield the changes of an operation that need no unknown number."""
    for kind, why, edit in _edits_of(group.steps[0]):
        yield Change(kind, group.steps, why, {step.number: edit for step in group.steps}, call=group.call)


def with_number(change: Change, number: float, *, times: bool) -> Change:
    """Return a change that takes a factor, or a term, into the operand or the result that it names."""

    def change_one(one: torch.Tensor) -> torch.Tensor:
        return one * number if times else one + number

    def edit(given: Sequence[torch.Tensor], rule: Rule) -> torch.Tensor:
        if change.operand < 0:
            return change_one(rule(*given))
        return rule(*(change_one(one) if at == change.operand else one for at, one in enumerate(given)))

    made = {step.number: edit for step in change.steps}
    return replace(change, edits=made)


def places(group: Group, steps: Sequence[Step]) -> Iterator[Change]:
    """Yield the changes of where a view reads: by another loop, at another read's or write's place of its turn, a tile off."""
    runs = group.steps
    rank = len(runs[0].valid)
    if any(len(one.valid) != rank or len(one.offset) != rank for one in runs):
        return
    sizes = [max(one.valid[axis] for one in runs) for axis in range(rank)]
    told = 0
    for axis in range(rank):
        for offsets in _other_offsets(runs, steps, axis, sizes[axis]):
            if told == _MOST_PLACES:
                return
            told += 1
            edits = {
                one.number: _reading((*one.offset[:axis], at, *one.offset[axis + 1 :]), one.valid)
                for one, at in zip(runs, offsets, strict=True)
            }
            yield Change(Kind.PLACE, runs, "read at another place", edits, call=group.call)


def _other_offsets(group: Sequence[Step], steps: Sequence[Step], axis: int, size: int) -> Iterator[list[int]]:
    own = [one.offset[axis] for one in group]
    known = [own]

    def new(offsets: list[int]) -> bool:
        if offsets in known or min(offsets) < 0:
            return False
        known.append(offsets)
        return True

    for name in dict.fromkeys(name for name, _ in group[0].loops):
        offsets = [dict(one.loops).get(name, -1) * size for one in group]
        if new(offsets):
            yield offsets
    for name in dict.fromkeys(name for name, _ in group[0].loops):
        for rows in (1, 2, 3, -1):  # one turn's share of a few rows is left out, or counted twice
            offsets = [at + rows * dict(one.loops).get(name, 0) for at, one in zip(own, group, strict=True)]
            if new(offsets):
                yield offsets
    for moved in (size, -size, 1, -1):
        offsets = [max(at + moved, 0) for at in own]
        if new(offsets):
            yield offsets
    turns: dict[tuple[object, ...], list[int]] = {}
    for step in steps:
        if step.opcode in ("VIEW", "ASSEMBLE") and len(step.offset) == len(group[0].offset):
            turns.setdefault((step.function, step.loops), []).append(step.offset[axis])
    beside = [turns.get((one.function, one.loops), []) for one in group]
    for at in range(min((len(one) for one in beside), default=0)):
        offsets = [one[at] for one in beside]
        if new(offsets):
            yield offsets


def _reading(offset: Sequence[int], sizes: Sequence[int]) -> Edit:
    def read(given: Sequence[torch.Tensor], rule: Rule) -> torch.Tensor:
        part = given[0][slices(offset, sizes)]
        return part if part.shape == tuple(sizes) else rule(*given)

    return read


def _edits_of(step: Step) -> Iterator[tuple[Kind, str, Edit]]:
    if step.opcode == "CAST":
        if step.dtype in NARROW:
            yield Kind.ROUNDING, "not rounded to fewer bits", lambda given, rule: given[0]
        return
    if step.moves:
        return
    if step.dtype in NARROW:
        yield Kind.ROUNDING, "made without rounding to fewer bits", lambda given, rule: rule(*given)
    two = 2 if step.opcode in BINARY else 1
    if kind_of(step.opcode) in ("sub", "div", "mm") and step.scalar is None:
        yield Kind.OPERANDS, "made of its operands the other way round", lambda given, rule: rule(given[1], given[0])
    other = _OTHER.get(step.opcode)
    if other is not None:
        yield Kind.OPERATION, f"made by {other}", _made_by(BINARY.get(other) or UNARY[other])
    for at in range(two):
        yield Kind.STEP, "left out", _operand(at)
    yield Kind.FACTOR, "of the other sign", lambda given, rule: -rule(*given)
    for at in range(two):
        yield Kind.FACTOR, "made of an operand of the other sign", _signed(at)


def _made_by(op: Rule) -> Edit:
    return lambda given, rule: op(*given)


def _operand(at: int) -> Edit:
    return lambda given, rule: given[at].expand(rule(*given).shape)


def _signed(at: int) -> Edit:
    return lambda given, rule: rule(*(-one if at == number else one for number, one in enumerate(given)))
