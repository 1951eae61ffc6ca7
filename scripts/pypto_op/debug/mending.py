"""Looks for an edit that mends a kernel: at most two operations that make the wanted result of what is at hand there.

If it can, what the kernel computed up to there is right and the edit is there; if it cannot, more than this place is wrong, or it
lies before. Sixty-four numbers that come out the same do so by no chance.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch

from pypto_op.debug.dump_files import Step
from pypto_op.debug.matching import says_little
from pypto_op.debug.wanted import Backwards, Want, alike

_MOST_VALUES = 28
_MOST_DECAYS = 24
_SAMPLE = 64
_FEW = 6
"""Fewer numbers may come out the same by chance."""

_NEAR = 1e-4
"""Relative error of two operations on numbers that were dumped in float32."""

_MOST_OFF = 1e-2
"""Most that what is added to another value may be off, of its largest number: that of the sum counts else."""

_OPS: Mapping[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "+": torch.add, "-": torch.sub, "*": torch.mul, "/": torch.div, "or, if larger,": torch.maximum,
}  # fmt: skip
_TURNED: Mapping[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "{} + {}": lambda wanted, c: wanted - c,
    "{} - {}": lambda wanted, c: wanted + c,
    "{1} - {0}": lambda wanted, c: c - wanted,
    "{} * {}": lambda wanted, c: wanted / c,
    "{} / {}": lambda wanted, c: wanted * c,
    "{1} / {0}": lambda wanted, c: c / wanted,
}
"""How (t, c) make the wanted result -> what t must be."""


@dataclass(frozen=True)
class Mend:
    """A place where one edit makes all that follows right."""

    want: Want  # the place
    formula: str  # what makes the wanted result, of results that the kernel has there: (#12 * #13) + #14, by numbers of steps
    # an operation of an earlier turn whose result should have been kept for this place; None where none is
    maker: Step | None = None


def first_mend(steps: Sequence[Step], back: Backwards, wants: Sequence[Want]) -> Mend | None:
    """Return the first place where a wanted result can be made of what there is, None where there is none.

    Of results that are only moved from one to the next the last one is told: what is written, not what is read.
    """
    found: Mend | None = None
    for want in wants:
        sound = want.value.numel() >= _FEW and back.dtype(want.step) is torch.float32 and _is_sound(back.value(want.step), want)
        if found is not None and not (sound and want.step.moves and found.want.step.moves):
            break
        formula = _formula(want, _at_hand(steps, back, want)) if sound else ""
        if found is not None and formula != found.formula:
            break
        if formula and (want.step.moves or " " in formula):  # what is there already was read wrong, or made into too much
            found = Mend(want, formula)
    return found if found is not None else _not_kept(steps, back, wants)


def _not_kept(steps: Sequence[Step], back: Backwards, wants: Sequence[Want]) -> Mend | None:
    """Return the first read of a state that would have to give what an operation of an earlier turn made and nobody kept."""
    for want in wants:
        if want.step.opcode != "VIEW" or want.value.numel() < _FEW or says_little(want.value):
            continue
        earlier = {(one.line, one.opcode): one for one in steps if one.number < want.step.number and one.line and not one.moves}
        for one in reversed(earlier.values()):
            if one.valid == want.step.valid and not _one_turn(one, want.step) and alike(back.value(one), want.value, _NEAR):
                return Mend(want, f"#{one.number}", one)
    return None


def _is_sound(made: torch.Tensor, want: Want) -> bool:
    """Say whether one edit here may mend a result: one that is not finite, or a multiple, was spoilt before."""
    ratio = (want.value / made).reshape(-1)
    ratio = ratio[ratio.isfinite()]
    multiple = len(ratio) > 1 and bool(((ratio - ratio[0]).abs() <= _NEAR * ratio[0].abs()).all())
    return bool(made.isfinite().all()) and not multiple


def _at_hand(steps: Sequence[Step], back: Backwards, want: Want) -> list[tuple[str, torch.Tensor]]:
    """Return the results that are there when a step runs: those of its turn, and the newest contents of each state."""
    before = [one for one in steps if one.number < want.step.number]
    states = {(one.symbol, one.valid): one for one in before if one.opcode == "ASSEMBLE" and one.names_tensor}
    turn = [one for one in before if one.opcode != "ASSEMBLE" and _one_turn(one, want.step)]
    found: list[tuple[str, torch.Tensor]] = []
    for one in itertools.chain(states.values(), reversed(turn)):
        value = back.value(one)
        if value.dim() != want.value.dim() or not all(a in (1, b) for a, b in zip(value.shape, want.value.shape, strict=True)):
            continue
        if says_little(value) or not bool(value.isfinite().all()):
            continue
        if any(known.shape == value.shape and bool(known.equal(value)) for _, known in found):
            continue
        found.append((f"#{one.number}", value))
        if len(found) == _MOST_VALUES:
            break
    return found + _decays(found)


def _decays(found: Sequence[tuple[str, torch.Tensor]]) -> list[tuple[str, torch.Tensor]]:
    """Return exp(a - b) of columns, which online forms multiply their states by."""
    columns = [(name, value) for name, value in found if value.shape[-1] == 1][:8]
    made = []
    for (one, a), (two, b) in itertools.permutations(columns, 2):
        decay = torch.exp(a - b)
        if bool((decay <= 1).all()) and float(decay.min()) > 0.0 and not says_little(decay):
            made.append((f"exp({one} - {two})", decay))
    return made[:_MOST_DECAYS]


def _one_turn(one: Step, two: Step) -> bool:
    return one.function == two.function and one.loops == two.loops


def _formula(want: Want, hand: Sequence[tuple[str, torch.Tensor]]) -> str:
    """Return how the wanted result is made of one, two or three of the values, "" for in no way."""
    if not hand:
        return ""
    wanted = want.value.reshape(-1)
    some = _telling(wanted)
    if len(some) < _FEW:
        return ""
    names = [name for name, _ in hand]
    wide = [value.expand(want.value.shape).reshape(-1)[some] for _, value in hand]
    target = wanted[some]
    for name, value in zip(names, wide, strict=True):
        if alike(value, target, _NEAR):
            return name
    values = torch.stack(wide)
    pairs, signs, first, second = _pairs(values)

    def told(row: int) -> str:
        return f"{names[int(first[row])]} {signs[row]} {names[int(second[row])]}"

    row = _row_alike(pairs, target, _allowed(target))
    if row is not None:
        return told(row)
    for at, (name, c) in enumerate(zip(names, wide, strict=True)):
        others = (first != at) & (second != at)  # with it the two operations would undo one another
        for form, turn in _TURNED.items():
            asked = turn(target, c)
            allowed = _allowed(target if "+" in form or "-" in form else asked)
            row = _row_alike(pairs, asked, torch.minimum(allowed, _MOST_OFF * asked.abs().max()), others)
            if row is not None:
                return form.format(f"({told(row)})", name)
    return ""


def _telling(wanted: torch.Tensor) -> torch.Tensor:
    """Return places of numbers that tell most: the largest ones, which differ from one another, the largest first."""
    order = wanted.abs().argsort(descending=True)
    sizes = wanted.abs()[order]
    if not len(order) or float(sizes[0]) == 0.0:
        return order[:0]
    apart = torch.ones(len(order), dtype=torch.bool)
    apart[1:] = (sizes[:-1] - sizes[1:]) > 10 * _NEAR * sizes[1:]
    order = order[apart & (sizes > 1e-3 * sizes[0])]
    return order[torch.linspace(0, len(order) - 1, min(_SAMPLE, len(order))).long()]


def _pairs(values: torch.Tensor) -> tuple[torch.Tensor, list[str], torch.Tensor, torch.Tensor]:
    """Return the result of each operation on each two rows of `values`, its sign, and the numbers of the rows."""
    count = len(values)
    first, second = torch.arange(count).repeat_interleave(count), torch.arange(count).repeat(count)
    kept = {"+": first < second, "*": first <= second}
    kept = {sign: kept.get(sign, first < second if op is torch.maximum else first != second) for sign, op in _OPS.items()}
    made = [op(values[first[kept[sign]]], values[second[kept[sign]]]) for sign, op in _OPS.items()]
    signs = [sign for sign in _OPS for _ in range(int(kept[sign].sum()))]
    return torch.cat(made), signs, torch.cat([first[kept[s]] for s in _OPS]), torch.cat([second[kept[s]] for s in _OPS])


def _allowed(target: torch.Tensor) -> torch.Tensor:
    return _NEAR * (target.abs() + 0.05 * target.abs().max())


def _row_alike(made: torch.Tensor, target: torch.Tensor, allowed: torch.Tensor, among: torch.Tensor | None = None) -> int | None:
    """Return the first row of `made` that is `target` within what is allowed, None where there is none."""
    if not bool(target.isfinite().all()):
        return None
    near = (made[:, 0] - target[0]).abs() <= allowed[0]
    rows = (near if among is None else near & among).nonzero().reshape(-1)
    same = ((made[rows] - target).abs() <= allowed).all(1).nonzero()
    return int(rows[same[0]]) if len(same) else None
