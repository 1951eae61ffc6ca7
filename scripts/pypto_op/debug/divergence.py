"""Finds the first operation of a kernel whose result leads away from the golden.

A result that is a block of a tensor of the golden agrees. One that is none may be right all the same: online forms have values
that the golden has not. It is right if something that agrees is computed from it, or if it does to parts of the golden's tensors
what the golden does to the whole. What is left, and depends on nothing that is left, is where the kernel goes its own way.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from pypto_op.debug.dump_files import Step
from pypto_op.debug.matching import KINDS, Golden, Match, kind_of, rounding_of, says_little

if TYPE_CHECKING:
    import torch

_FEW = 4
"""Fewer numbers may be equal by chance."""

_MUTE = "the same number everywhere, though an operand is not; nothing right is computed from it"
_MANY = 3000
"""Of more steps only what is off by more than rounding is looked for: each look costs a second for a thousand of them."""

TIGHTNESS = (1.0, 0.1, 0.01)
"""What counts as rounding, tried in turn: a fault may be smaller than the first."""


_Place = tuple["int | None", str, tuple[tuple[str, int], ...], str]
"""Line, opcode, turn and graph of an operation."""


class Standing(Enum):
    """How a result stands to the golden."""

    AGREES = "agrees"
    PART = "part"
    SILENT = "silent"
    OFF = "off"


@dataclass(frozen=True)
class Divergence:
    """A place where the kernel leaves the golden."""

    step: Step  # the operation
    why: str  # one sentence
    sure: bool = True  # the result is none of the golden's, not only a part of one that never becomes whole
    # the operations of this line, opcode and turn, in order; several where a helper is called several times
    same: tuple[int, ...] = ()
    well: frozenset[int] = frozenset()  # operations whose result agrees with the golden, or leads to something that does

    def call_of(self, calls: int) -> int | None:
        """Return which of a helper's calls is at fault though an earlier one was well (counted from 0), None for no such.

        Args:
            calls: how many calls of the helper the loop has.
        """
        if calls < 2 or self.step.number not in self.same:
            return None
        each = max(len(self.same) // calls, 1)  # a helper's line may hold the same operation several times
        at = self.same.index(self.step.number)
        before = range(at % each, at, each)
        return min(at // each, calls - 1) if before and all(self.same[one] in self.well for one in before) else None


def first_divergences(steps: Sequence[Step], golden: Golden) -> tuple[list[Divergence], frozenset[int]]:
    """Return the operations whose result is off though all their operands are well, first ones first; and all that are well."""
    values = {step.number: step.tensor() for step in steps}
    found: list[Divergence] = []
    well: frozenset[int] = frozenset()
    for tightness in TIGHTNESS if len(steps) <= _MANY else TIGHTNESS[:1]:
        found, well = _at(steps, golden, values, tightness)
        if found:
            break
    return found, well


def went_through(steps: Sequence[Step], golden: Golden, reached: Sequence[Step]) -> list[Divergence]:
    """Return what is off on the way to results that agree, where these only hand on what agreed before.

    A mask that hides no element, made from wrong numbers, leaves a right tensor in the place of the output.

    Args:
        reached: the operations whose results stand in the wrong place.
    """
    if not reached or len(steps) > _MANY:
        return []
    found, _ = _at(steps, golden, {step.number: step.tensor() for step in steps}, TIGHTNESS[0], strict=True)
    led = {step.number for step in reached}
    for step in reversed(steps):
        if step.number in led:
            led.update(step.parents)
    return [one for one in found if one.step.number in led]


def _at(
    steps: Sequence[Step], golden: Golden, values: dict[int, torch.Tensor], tightness: float, *, strict: bool = False
) -> tuple[list[Divergence], frozenset[int]]:
    standing: dict[int, Standing] = {}
    matches: dict[int, set[int]] = {}
    rounding = _rounding(steps, values)
    for step in steps:
        value = values[step.number]
        found: list[Match] = golden.matches(value, rounding[step.number] * tightness)
        matches[step.number] = {match.tensor for match in found}
        if says_little(value):
            standing[step.number] = Standing.SILENT
        elif found:
            standing[step.number] = Standing.AGREES
        else:
            whole = not step.moves and bool(step.parents) and all(standing[one] is Standing.AGREES for one in step.parents)
            matches[step.number] = _part_of(step, golden, matches, values, whole)
            standing[step.number] = Standing.PART if matches[step.number] else Standing.OFF
    cleared = _lead_back(steps, standing, _proving(steps, matches, values) if strict else None)
    left = {step.number for step in steps if standing[step.number] is Standing.OFF and step.number not in cleared}
    sure = bool(left)
    if not left:  # parts, all of them, and yet nothing right came of these
        left = {step.number for step in steps if standing[step.number] is Standing.PART and step.number not in cleared}
    first = [step for step in steps if step.number in left and not left & set(step.parents)]
    # Where a state is moved from turn to turn its contents are off because of what was computed before.
    computed = [step for step in first if not step.moves] or first
    well = frozenset(cleared | {number for number, how in standing.items() if how is Standing.AGREES})
    placed = [step for step in computed if step.line is not None]
    if not placed:
        return [Divergence(step, _MUTE) for step in _muted(steps, standing, cleared, values)], well
    alike: dict[_Place, list[int]] = {}
    for step in steps:
        alike.setdefault(_place_of(step), []).append(step.number)
    return [Divergence(step, _why(step, golden, matches), sure, tuple(alike[_place_of(step)]), well) for step in placed], well


def _muted(
    steps: Sequence[Step], standing: dict[int, Standing], cleared: set[int], values: dict[int, torch.Tensor]
) -> list[Step]:
    """Return the first operation that makes one number everywhere of an operand of several, where nothing right comes of it."""
    for step in steps:
        plain = not step.moves and step.line is not None and values[step.number].numel() >= _FEW
        silent = standing[step.number] is Standing.SILENT and step.number not in cleared
        if plain and silent and any(standing[one] is Standing.AGREES for one in step.parents):
            return [step]
    return []


def same_operations(steps: Sequence[Step], step: Step) -> tuple[int, ...]:
    """Return the numbers of the operations of a step's line, opcode and turn."""
    key = _place_of(step)
    return tuple(one.number for one in steps if _place_of(one) == key)


def _place_of(step: Step) -> _Place:
    return step.line, step.opcode, step.loops, step.function


def maker_of(step: Step, steps: Sequence[Step]) -> Step:
    """Return the operation that made what a step hands on as it is (a sum with 0, a copy): the step itself where it makes it."""
    by_number = {one.number: one for one in steps}
    while len(step.parents) == 1:
        before = by_number[step.parents[0]]
        made, given = step.tensor(), before.tensor()
        if before.moves or before.line is None or made.dtype != given.dtype or not made.equal(given):
            return step
        step = before
    return step


def _rounding(steps: Sequence[Step], values: dict[int, torch.Tensor]) -> dict[int, float]:
    """Return what counts as rounding for each result: 16 bits excuse something only where the kernel's inputs have no more."""
    own = {step.number: rounding_of(values[step.number].dtype) for step in steps}
    least = min(own.values(), default=0.0)
    if not any(step.given and own[step.number] > least for step in steps):
        return dict.fromkeys(own, least)
    return {step.number: max(own[one] for one in (step.number, *step.parents)) for step in steps}


def _lead_back(steps: Sequence[Step], standing: dict[int, Standing], proving: frozenset[int] | None) -> set[int]:
    """Return the steps from which something that agrees was computed.

    Args:
        proving: numbers of the steps whose agreement counts; None: all.
    """
    cleared: set[int] = set()
    for step in reversed(steps):
        agrees = standing[step.number] is Standing.AGREES and (proving is None or step.number in proving)
        if step.number in cleared or agrees:
            cleared.update(step.parents)
    return cleared


def _proving(steps: Sequence[Step], matches: Mapping[int, set[int]], values: Mapping[int, torch.Tensor]) -> frozenset[int]:
    """Return the steps whose result proves that what it went through is right: it is no single number, and new to its way.

    A mask that hides no element hands its operand on, and a sum of what was divided by its sum is 1, whatever led there.
    """
    led: dict[int, set[int]] = {}  # the golden's tensors that led to a step
    found = set()
    for step in steps:
        led[step.number] = set().union(*(led.get(one, set()) | matches.get(one, set()) for one in step.parents))
        value, rounding = values[step.number].reshape(-1).double(), rounding_of(values[step.number].dtype)
        constant = value.numel() == 0 or bool(((value - value[0]).abs() <= rounding * value[0].abs()).all())
        if not step.moves and not constant and not matches[step.number] & led[step.number]:
            found.add(step.number)
    return frozenset(found)


def _part_of(step: Step, golden: Golden, matches: dict[int, set[int]], values: dict[int, torch.Tensor], whole: bool) -> set[int]:
    """Return the golden's tensors of which this result may be a part: the same operation, on parts of the same operands.

    Where the operands are the golden's own blocks (`whole`), only a sum or a largest one over less than the golden's is a part.
    """
    if step.moves and step.parents:
        return set.intersection(*(matches[parent] for parent in step.parents))
    wanted = KINDS.get(kind_of(step.opcode))
    if not wanted or not step.parents:
        return set()
    given = [matches[parent] for parent in step.parents]
    fewest = min(given, key=len)  # what is made of it, not every row of the golden, is looked through
    rows = {id(row): row for one in fewest for row in golden.used_by.get(one, ()) if row["op"] in wanted}.values()
    same = {int(row["tensor"]) for row in rows if all(g & set(row["inputs"]) for g in given)}
    if whole:
        terms = _terms([values[one].shape for one in step.parents], values[step.number].shape)
        made = [row for one in same for row in golden.made_by.get(one, ())]
        same = {int(row["tensor"]) for row in made if terms < _terms_of(row, golden)}
    if len(given) == 1 and kind_of(step.opcode) in ("amax", "amin") and not step.opcode.startswith("ROW"):
        parent = step.parents[0]  # a bound: well where it moves nothing
        return matches[parent] if values[parent].equal(values[step.number]) else set()
    if kind_of(step.opcode) in ("add", "amax", "amin"):  # partial results of one operation, put together
        makers = {"add": "sum"}.get(kind_of(step.opcode), kind_of(step.opcode))
        together = set.intersection(*given)
        same |= {one for one in together if any(row["op"] in KINDS[makers] for row in golden.made_by.get(one, ()))}
    return same


def _terms(given: Sequence[Sequence[int]], made: Sequence[int]) -> float:
    """Return how many elements enter one element of a result; of a product of matrices the inner size."""
    sizes = [math.prod(shape[-2:]) for shape in given]
    out = max(math.prod(made[-2:]), 1)
    if len(sizes) == 2 and len(made) >= 2 and sizes[0] * sizes[1] > out * max(sizes):
        return math.sqrt(sizes[0] * sizes[1] / out)
    return max(sizes) / out


def _terms_of(row: Mapping[str, Any], golden: Golden) -> float:
    return _terms([golden.shapes[int(one)] for one in row["inputs"]], golden.shapes[int(row["tensor"])])


def _why(step: Step, golden: Golden, matches: dict[int, set[int]]) -> str:
    operands = sorted({golden.lines.get(number, 0) for parent in step.parents for number in matches[parent]} - {0})
    known = f"; its operands are those of the golden's lines {', '.join(map(str, operands[:6]))}" if operands else ""
    return f"no tensor of the golden has this result, and nothing right is computed from it{known}"
