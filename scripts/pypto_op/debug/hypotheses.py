"""Which single change of one line makes the outputs right? Tries `changes` in torch, on the operations that a kernel recorded.

A change is made in every turn of the loops at once, as an edit of a line is. It explains the fault where all blocks that are
looked at, right ones and wrong ones, come out as the golden has them; many numbers do so by no chance.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import torch

from pypto_op.debug import changes
from pypto_op.debug.changes import Change, Group, Kind
from pypto_op.debug.dump_files import Step
from pypto_op.debug.rerun import NARROW, Edit, Opaque, Rerun
from pypto_op.debug.substitutes import AtHand
from pypto_op.debug.wanted import Backwards, Want

_SECONDS = 0.9
"""Processor time that is spent on trying."""

_SECONDS_FOR_OTHERS = 0.45
_SECONDS_FOR_NUMBERS = 0.3
"""At least that much is spent on the later kinds, however long the first took."""

_LARGE = 1500
"""Of a run of more steps few changes can be tried in any time, and all else takes longer: it gets a sixth of these."""

_FEW = 4
"""Fewer numbers of outputs may come out right by chance."""

_NEAR = {"DT_FP16": 1e-3, "DT_BF16": 8e-3}
_NEAR_ELSE = 2e-5
_MOST_NUMBERS = 12
_MOST_STEPS = 1500
"""Steps that are computed again to see whether right blocks stay right."""

_CHOOSING = ("MAX", "MIN", "ROWMAX", "ROWMIN")
"""Operations that take one of their operands as it is; of another largest one the result is often the same in the end."""

_MUCH_LESS = 0.3
_ROUNDS = 7
_MOST_OTHERS = 2


class Trial:
    """The blocks of outputs that must come out right, and the run that made them.

    Args:
        back: knows what is well.
        outputs: numbers of the golden's outputs among its tensors.
    """

    def __init__(self, steps: Sequence[Step], back: Backwards, outputs: Sequence[int], names: Sequence[str]) -> None:
        self._back = back
        first: dict[tuple[int, bool], Want] = {}
        last: dict[tuple[int, bool], Want] = {}
        for tensor, want, _ in back.blocks(outputs, names):
            wrong = _distance(back.value(want.step), want) > 1.0
            first.setdefault((tensor, wrong), want)
            last[tensor, wrong] = want
        wrong_ones = [want for (_, wrong), want in first.items() if wrong]
        self.possible = sum(want.value.numel() for want in wrong_ones) >= _FEW
        """Whether something is wrong of which enough numbers are known."""
        self.ends = wrong_ones[:1]
        chosen = _few_steps(steps, {want.step.number: want for want in (*first.values(), *last.values())})
        self._all_ends = [chosen[number] for number in sorted(chosen)]
        self.near = Rerun(steps, [want.step.number for want in self.ends])
        self._whole = Rerun(steps, list(chosen))
        self._last_well = self._find_last_well()
        self._finish = _finishing(steps, [want.step.number for want in self._all_ends])
        self._share = 1 / 6 if len(steps) > _LARGE else 1.0
        self._until = time.process_time() + self._share * _SECONDS

    @property
    def over(self) -> bool:
        """Whether the time for trying is spent."""
        return time.process_time() > self._until

    def allow(self, seconds: float) -> None:
        """Give a next kind of changes processor time of its own, beside what is left."""
        self._until = max(self._until, time.process_time() + self._share * seconds)

    def explains(self, change: Change) -> bool:
        """Say whether a change makes every block right."""
        return self._right(self.near, self.ends, change) and self._right(self._whole, self._all_ends, change)

    def outcome(self, change: Change) -> torch.Tensor | None:
        """Return the first wrong block as it would be after a change; None where that cannot be told."""
        made = _changed(self.near, change)
        return None if made is None else made.get(self.ends[0].step.number)

    def operands(self) -> dict[int, list[int]]:
        """Return the numbers of the operands of each step that leads to a block which is looked at."""
        return {number: run.operands(number) for run in (self.near, self._whole) for number in run.numbers}

    def is_frontier(self, group: Sequence[Step]) -> bool:
        """Say whether the first wrong run of an operation has operands that are all well."""
        near = {step.number: step for step in self.near.steps}
        first = next((step for step in group if step.number in near and not self._back.is_well(step)), None)
        return first is not None and all(self._back.is_well(near[one]) for one in self.near.operands(first.number))

    def may_be_at_fault(self, group: Sequence[Step]) -> bool:
        """Say whether a run of an operation led to the first wrong block and is not right for certain."""
        near = set(self.near.numbers)
        led = [step for step in group if step.number in near and step.number not in self._finish]
        return bool(led) and (_may_seem_well(group[0]) or not all(self._back.is_well(step) for step in led))

    def is_right(self, some: Sequence[Step]) -> bool:
        """Say whether all of these steps give what the golden has."""
        return all(self._back.is_well(step) for step in some)

    def is_last_well(self, group: Sequence[Step]) -> bool:
        """Say whether a run of an operation is well and what is made of it is not: a step may be missing behind it."""
        return any(step.number in self._last_well for step in group)

    def _find_last_well(self) -> set[int]:
        near = {step.number: step for step in self.near.steps}
        ends = {want.step.number for want in self.ends}
        found: set[int] = set()
        for number, step in near.items():
            if number in ends or not self._back.is_well(step):
                waiting = [number] if number in ends and step.moves else list(self.near.operands(number))
                while waiting:
                    one = near[waiting.pop()]
                    if one.moves:
                        waiting += self.near.operands(one.number)
                    elif self._back.is_well(one):
                        found.add(one.number)
        return found

    def _right(self, run: Rerun, ends: Sequence[Want], change: Change) -> bool:
        made = _changed(run, change)
        if made is None:
            return False
        for want in ends:
            before = self._back.value(want.step)
            allowed = 1.0
            if change.kind is Kind.ROUNDING and (off := _distance(before, want)) > 1.0:
                allowed = off * _MUCH_LESS  # others, which are meant, may round as much as the outputs are rounded
            if _distance(made.get(want.step.number, before), want) > allowed:
                return False
        return True


def _may_seem_well(step: Step) -> bool:
    """Say whether a result may be the golden's though its line is at fault: hardly off, a wrong block, or a step of nothing."""
    rounds = step.opcode == "CAST" and step.dtype in NARROW
    return rounds or step.opcode in ("VIEW", "RANGE", *changes.SCALED)


def explaining(
    steps: Sequence[Step], back: Backwards, outputs: Sequence[int], names: Sequence[str], numbers: frozenset[float]
) -> list[Change]:
    """Return the changes that explain the wrong outputs, the likeliest first.

    Args:
        outputs: numbers of the golden's outputs among its tensors.
        numbers: what the golden's operations take beside tensors.
    """
    trial = Trial(steps, back, outputs, names)
    if not trial.possible:
        return []
    every = changes.groups(steps)
    groups = [group for group in every if trial.may_be_at_fault(group.steps)]
    found = list(_those(_plain(groups, steps, trial), trial))
    if not any(one.kind < Kind.FACTOR for one in found):
        trial.allow(_SECONDS_FOR_OTHERS)
        found += itertools.islice(_those(_with_others(every, steps, trial, back), trial), _MOST_OTHERS)
        trial.allow(0.0 if found else _SECONDS_FOR_NUMBERS)
    if not any(one.kind < Kind.FACTOR for one in found):
        numbers |= {abs(step.scalar) for step in steps if step.scalar is not None}  # another line may take what is missing here
        more = [group for group in every if trial.is_last_well(group.steps)]
        waiting = _waiting_for_a_number([*changes.of_one_number(steps), *groups, *more], trial)
        in_time = itertools.takewhile(lambda _: not trial.over, waiting)
        found += _those((one for change in in_time if (one := _solved(trial, change, numbers)) is not None), trial)
    return sorted(found, key=_likeliness)


def _likeliness(change: Change) -> tuple[bool, int, bool, bool, int, int]:
    """Return what sorts changes: a number that the golden has goes first, then those that begin where all is well.

    What is right goes last where it would have to be divided by what the golden multiplies with: a line behind it multiplies too
    much. Where a change of one call's place is enough, the helper that reads there is right; other changes are a line's, of all
    calls.
    """
    typo, rounding = change.kind is Kind.NUMBER, change.kind is Kind.ROUNDING
    runs = len(change.steps) if change.kind is Kind.PLACE else -len(change.steps)
    return (
        not (change.known or change.frontier or typo),
        change.kind,
        change.undone,
        rounding or not change.frontier,
        runs,
        change.steps[0].number,
    )


def _those(candidates: Iterator[Change], trial: Trial) -> Iterator[Change]:
    for change in candidates:
        if trial.over:
            return
        if trial.explains(change):
            yield change


def _plain(groups: Sequence[Group], steps: Sequence[Step], trial: Trial) -> Iterator[Change]:
    """Yield the changes that need no unknown number, those of roundings first: nothing else makes up for them."""
    for group in sorted(groups, key=lambda group: group.steps[0].opcode != "CAST"):
        made = changes.places(group, steps) if group.steps[0].opcode == "VIEW" else changes.plain(group)
        yield from (replace(change, frontier=trial.is_frontier(group.steps)) for change in made)


def _with_others(groups: Sequence[Group], steps: Sequence[Step], trial: Trial, back: Backwards) -> Iterator[Change]:
    """Yield the changes that take another value which is at hand, nearest to where all is well first."""
    hand = AtHand(steps, back.value, back.inputs)
    near, operands = set(trial.near.numbers), trial.operands()
    edge: list[Group] = []
    rest: list[Group] = []
    for group in sorted(
        groups, key=lambda group: (not trial.is_frontier(group.steps), group.call is None, -group.steps[0].number)
    ):
        led = [step for step in group.steps if step.number in near]
        if led and (not led[0].moves or led[0].opcode == "VIEW") and not led[0].opcode.startswith(_CHOOSING):
            at_edge = trial.is_frontier(group.steps) or trial.is_last_well(group.steps)
            others = [step for step in group.steps if step.number in operands and step is not led[0]]
            (edge if at_edge else rest).append(replace(group, steps=(led[0], *others)))
    for make, some in (
        (hand.exchanged, [*edge, *reversed(rest)]),
        (hand.replaced, [*edge, *reversed(rest)]),
        (hand.beside, edge),
    ):
        for group in some:
            for at in range(len(operands[group.steps[0].number])):
                yield from (replace(change, frontier=True) for change in make(group, at, operands))


def _waiting_for_a_number(groups: Sequence[Group], trial: Trial) -> Iterator[Change]:
    near = set(trial.near.numbers)
    for group in groups:
        led = next((step.number for step in group.steps if step.number in near), None)
        if led is None or group.steps[0].moves or group.steps[0].opcode.startswith(("CAST", *_CHOOSING)):
            continue
        frontier = trial.is_frontier(group.steps)
        if group.steps[0].opcode in changes.SCALED:
            yield Change(Kind.NUMBER, group.steps, "made with another number", {}, frontier=frontier, call=group.call)
        else:
            yield Change(
                Kind.FACTOR, group.steps, "multiplied by, or added to, one more number", {}, frontier=frontier, call=group.call
            )
        for at in range(len(trial.near.operands(led))):
            yield Change(
                Kind.FACTOR, group.steps, "made of an operand with one more factor or term", {}, at, frontier, call=group.call
            )


def _solved(trial: Trial, change: Change, numbers: frozenset[float]) -> Change | None:
    """Return a change with the factor or the term that makes one number of the first wrong block right."""
    want = trial.ends[0]
    before = trial.near.value(want.step.number)
    off = (before - want.value).abs()
    off = torch.where(off.isfinite(), off, torch.zeros_like(off))
    at = int(off.argmax())
    target = float(want.value.reshape(-1)[at])
    for times in (True, False):

        def off_with(number: float, times: bool = times) -> float:
            made = trial.outcome(changes.with_number(change, number, times=times))
            return float(made.reshape(-1)[at]) - target if made is not None else math.nan

        scalar = change.steps[0].scalar if change.kind is Kind.NUMBER else None
        near = _asked(numbers, scalar, times)
        for guess in itertools.takewhile(lambda _: not trial.over, near):
            if abs(off_with(guess)) <= _NEAR_ELSE * max(abs(target), 1e-3):
                undone = times and guess not in numbers and trial.is_right(change.steps)
                return replace(changes.with_number(change, guess, times=times), known=True, undone=undone)
        number = _root(off_with, float(before.reshape(-1)[at]) - target, target, times)
        if number is None or trial.over:
            continue
        solved = changes.with_number(change, number, times=times)
        made = trial.outcome(solved)
        if made is not None and _distance(made, want) <= 1.0:
            return replace(solved, known=any(abs(number - one) <= 1e-4 * abs(one) for one in near))
    return None


def _asked(numbers: frozenset[float], scalar: float | None, times: bool) -> list[float]:
    """Return the factors, or the terms, that would make a number of the kernel's one of the golden's, or bring it in."""
    told = sorted(number for number in numbers if number not in (0.0, 1.0))[:_MOST_NUMBERS]
    if not times:
        return [1.0, -1.0, *(number - (scalar or 0.0) for number in told)]
    own = 1.0 if scalar is None else scalar
    return [factor / own for number in told for factor in (number, 1.0 / number)] if own else []


def _root(off: Callable[[float], float], without: float, target: float, times: bool) -> float | None:
    """Return the number for which nothing is off, by the secant; None where none is found.

    Args:
        off: what is off with a number.
        without: what is off without one.
        target: the number that is wanted.
        times: it is a factor, not a term.
    """
    last, now = (1.0, 1.01) if times else (0.0, 1e-3)
    f_last, f_now = without, off(now)
    for _ in range(_ROUNDS):
        if not math.isfinite(f_now) or f_now == f_last:
            return None
        if abs(f_now) <= 1e-7 * max(abs(target), 1e-3):
            return now
        last, now, f_last = now, now - f_now * (now - last) / (f_now - f_last), f_now
        f_now = off(now)
    return now if math.isfinite(f_now) else None


def _changed(run: Rerun, change: Change) -> Mapping[int, torch.Tensor] | None:
    there = set(run.numbers)
    edits: dict[int, Edit] = {number: edit for number, edit in change.edits.items() if number in there}
    try:
        return run.changed(edits, exact=change.kind is Kind.ROUNDING)
    except (Opaque, RuntimeError, IndexError):
        return None


def _few_steps(steps: Sequence[Step], ends: Mapping[int, Want]) -> dict[int, Want]:
    """Return the first ends that not too many steps lead to."""
    chosen: dict[int, Want] = {}
    for number in sorted(ends):
        if chosen and len(Rerun(steps, [*chosen, number]).numbers) > _MOST_STEPS:
            break
        chosen[number] = ends[number]
    return chosen


def _finishing(steps: Sequence[Step], ends: Sequence[int]) -> set[int]:
    """Return the casts that make an output's dtype of a block: they have to be there."""
    by_number = {step.number: step for step in steps}
    found = set()
    for number in ends:
        step = by_number[number]
        while step.moves and len(step.parents) == 1:
            step = by_number[step.parents[0]]
        if step.opcode == "CAST":
            found |= {one.number for one in steps if (one.line, one.opcode) == (step.line, step.opcode)}
    return found


def _distance(made: torch.Tensor, want: Want) -> float:
    """Return how far a result is from the wanted one, in what its dtype excuses; more than 1 is wrong."""
    told = want.value
    finite = told[told.isfinite()].abs()
    scale = float(finite.max()) if finite.numel() else 0.0
    allowed = _NEAR.get(want.step.dtype, _NEAR_ELSE) * (told.abs() + 0.1 * scale) + 1e-30
    off = torch.where((made == told) | (made.isnan() & told.isnan()), torch.zeros_like(told), (made - told).abs() / allowed)
    return float(off.nan_to_num(nan=math.inf).max()) if off.numel() else 0.0
