"""Runs a kernel's operations once more in torch, from its dumps: as they were, and with some of them changed.

Where torch gives what the dump has, that way of computing an operation is its rule; where it gives something else of what the
dump tells whole, the simulator does not do what it says. With changes the question is what the outputs would be then: what has
no rule keeps the dumped result as long as nothing that it is made of changes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import torch

from pypto_op.debug.dump_files import Step, slices

Rule = Callable[..., torch.Tensor]
Edit = Callable[[Sequence[torch.Tensor], Rule], torch.Tensor]
"""Makes another result of an operation's operands and its rule."""

UNARY: Mapping[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "EXP": torch.exp,
    "SQRT": torch.sqrt,
    "RSQRT": torch.rsqrt,
    "LN": torch.log,
    "ABS": torch.abs,
    "NEG": torch.neg,
    "RECIPROCAL": torch.reciprocal,
}
BINARY: Mapping[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "ADD": torch.add,
    "SUB": torch.sub,
    "MUL": torch.mul,
    "DIV": torch.div,
    "MAXIMUM": torch.maximum,
    "MINIMUM": torch.minimum,
}
_ALLOWED = {torch.float16: 2e-3, torch.bfloat16: 1.6e-2}
_ALLOWED_ELSE = 1e-4
NARROW: Mapping[str, torch.dtype] = {"DT_FP16": torch.float16, "DT_BF16": torch.bfloat16}
_COMPARED = (torch.eq, torch.ne, torch.lt, torch.le, torch.gt, torch.ge)
_REDUCED: Mapping[str, Rule] = {"ROWSUM": torch.sum, "ROWMAX": torch.amax, "ROWMIN": torch.amin}
_TOLD_WHOLE = frozenset({*UNARY, *BINARY, *_REDUCED, "A_MUL_B", "CAST"})
"""Operations of which the dump tells all but the order of the operands and an axis: no scalar, and no mode that decides."""


class Opaque(Exception):
    """An operation that is not known here would have to be computed from operands that changed."""


class Rerun:
    """The part of a kernel's run that some results were computed by.

    Args:
        ends: numbers of the steps that are looked at.
    """

    def __init__(self, steps: Sequence[Step], ends: Sequence[int]) -> None:
        self._by_number = {step.number: step for step in steps}
        by_name = {step.name: step.number for step in steps}
        self._before = _earlier_writes(steps)
        self._given: dict[int, list[int]] = {}
        self._values: dict[int, torch.Tensor] = {}
        self._rules: dict[int, Rule | None] = {}
        self._reached: dict[frozenset[int], list[int]] = {}
        self.numbers: list[int] = []
        waiting, seen = list(ends), set(ends)
        while waiting:
            step = self._by_number[waiting.pop()]
            named = [by_name[name] for name in step.inputs if name in by_name]
            given = named if named and len(named) == len(step.inputs) else list(step.parents)
            if step.opcode == "ASSEMBLE" and step.number in self._before:
                given = [*given[:1], self._before[step.number]]
            self._given[step.number] = given
            waiting += [one for one in given if one not in seen]
            seen.update(given)
        self.numbers = sorted(seen)

    @property
    def steps(self) -> list[Step]:
        """The steps that the ends were computed by, in the order of the run."""
        return [self._by_number[number] for number in self.numbers]

    def operands(self, number: int) -> list[int]:
        """Return the numbers of a step's operands, in their order; of a write also the one before it to the same tensor."""
        return self._given[number]

    def value(self, number: int) -> torch.Tensor:
        """Return a dumped result, in float64."""
        if number not in self._values:
            self._values[number] = self._by_number[number].tensor().to(torch.float64)
        return self._values[number]

    def changed(self, edits: Mapping[int, Edit], *, exact: bool = False) -> dict[int, torch.Tensor]:
        """Return the results that change where the operations `edits` compute something else.

        Args:
            edits: by number.
            exact: what the edits compute is not rounded to the dtype of the results.

        Raises:
            Opaque: one of them cannot be computed here.
        """
        made: dict[int, torch.Tensor] = {}
        for number in self._reached_from(frozenset(edits)):
            given = self._given[number]
            edit = edits.get(number)
            rule = self._rule(number)
            if rule is None:
                raise Opaque
            operands = [made[one] if one in made else self.value(one) for one in given]
            made[number] = edit(operands, rule) if edit is not None else rule(*operands)
            if edit is None or not exact:
                made[number] = self._rounded(made[number], number)
            if made[number].shape != self.value(number).shape:
                raise Opaque
        return made

    def _reached_from(self, edited: frozenset[int]) -> list[int]:
        """Return the numbers of the steps `edited` and of all that is made of them; the same ones are tried with many numbers."""
        if edited not in self._reached:
            reached: set[int] = set()
            for number in self.numbers:
                if number in edited or not reached.isdisjoint(self._given[number]):
                    reached.add(number)
            self._reached[edited] = sorted(reached)
        return self._reached[edited]

    def _rounded(self, made: torch.Tensor, number: int) -> torch.Tensor:
        narrow = NARROW.get(self._by_number[number].dtype)
        return made if narrow is None else made.to(torch.float32).to(narrow).to(torch.float64)

    def _rule(self, number: int) -> Rule | None:
        if number not in self._rules:
            step = self._by_number[number]
            given = [self.value(one) for one in self._given[number]]
            self._rules[number] = next((rule for rule in _rules(step, given) if _gives(rule, given, step)), None)
        return self._rules[number]


def disagreeing(steps: Sequence[Step]) -> Step | None:
    """Return the first operation whose dumped result is not what torch makes of its dumped operands; None: all agree.

    Operations with attributes that the dump does not tell are passed over.
    """
    by_name = {step.name: step for step in steps}
    for step in steps:
        plain = step.opcode.removesuffix("_SINGLE")
        if step.moves or plain not in _TOLD_WHOLE or any(name not in by_name for name in step.inputs):
            continue
        given = [by_name[name].tensor().to(torch.float64) for name in step.inputs]
        turned = [given[::-1]] if step.opcode in BINARY else []
        asked = [_gives(rule, operands, step) for operands in (given, *turned) for rule in _rules(step, operands)]
        if any(told is not None for told in asked) and not any(asked):
            return step
    return None


def _gives(rule: Rule, given: Sequence[torch.Tensor], step: Step) -> bool | None:
    """Say whether a rule makes the dumped result of its operands; None where it makes another shape, or nothing."""
    told = step.tensor()
    try:
        made = rule(*given)
    except (RuntimeError, IndexError):
        return None
    if made.shape != told.shape:
        return None
    wide, limits = told.to(torch.float64), torch.finfo(told.dtype) if told.is_floating_point() else None
    scale = max((float(one[one.isfinite()].abs().max()) for one in (*given, wide) if bool(one.isfinite().any())), default=1.0)
    allowed = _ALLOWED.get(told.dtype, _ALLOWED_ELSE) * (wide.abs() + 0.1 * min(scale, 1e30))  # sums may cancel
    least = limits.smallest_normal * limits.eps if limits else 0.0  # what lies below the dtype's least number becomes 0
    beyond = ~wide.isfinite() | ~made.isfinite() | (made.abs() > (limits.max if limits else math.inf))
    return bool(((made - wide).abs() <= allowed + least).logical_or((made == wide) | beyond).all())


def _earlier_writes(steps: Sequence[Step]) -> dict[int, int]:
    """Return for each write of a part of a tensor the write before it to the same one."""
    last: dict[tuple[str, tuple[int, ...]], int] = {}
    found = {}
    for step in steps:
        if step.opcode == "ASSEMBLE" and step.names_tensor:
            key = (step.symbol, step.valid)
            if key in last:
                found[step.number] = last[key]
            last[key] = step.number
    return found


def _rules(step: Step, given: Sequence[torch.Tensor]) -> Iterator[Rule]:
    """Yield the ways in which an operation may be computed; the dump does not tell everything of it."""
    plain = step.opcode.removesuffix("_SINGLE")
    if step.opcode == "RANGE" and not given:
        told = step.tensor().to(torch.float64)
        yield lambda: told
    elif step.moves or step.opcode in ("REGISTER_COPY", "CAST"):
        yield from _moving(step, given)
    elif plain in _REDUCED:
        yield from (_reduction(_REDUCED[plain], axis) for axis in range(-1, -len(step.valid) - 1, -1))
    elif len(given) == 1 and step.opcode in UNARY:
        yield UNARY[step.opcode]
    elif len(given) == 1 and step.scalar is not None:
        yield from _with_scalar(step.opcode, step.scalar)
    elif len(given) == 2 and step.opcode in BINARY:
        yield BINARY[step.opcode]
    elif step.opcode == "CMP" and len(given) == 2:
        yield from (_as_numbers(op) for op in _COMPARED)
    elif step.opcode.startswith("A_MUL") and len(given) == 2:
        yield from (_product(left, right) for left in (False, True) for right in (False, True))
    elif step.opcode.startswith("WHERE"):
        yield from _choosing(step, given)
    elif step.opcode in ("GATHER", "GATHER_ELEMENT") and len(given) == 2:
        yield lambda a, index: a.index_select(0, index.long().reshape(-1)).reshape(step.valid)
        yield lambda a, index: a.gather(-1, index.long())
        yield lambda a, index: a.gather(0, index.long())


def _moving(step: Step, given: Sequence[torch.Tensor]) -> Iterator[Rule]:
    if not given:
        return
    own = given[0].shape
    if step.opcode == "ASSEMBLE":
        yield _writing(step, slices(step.offset, own)) if len(step.offset) == len(own) else lambda a, *_: a.reshape(step.valid)
    elif step.opcode == "CAST":
        yield _rounding(step)
    elif step.opcode == "VIEW" and len(step.offset) == len(own) == len(step.valid):
        yield lambda a: a[slices(step.offset, step.valid)]
    if math.prod(own) == math.prod(step.valid) and step.opcode != "TRANSPOSE":
        yield lambda a: a.reshape(step.valid)
    if step.opcode == "EXPAND":
        yield lambda a: a.expand(step.valid)
    if step.opcode == "TRANSPOSE":
        yield from (_exchanging(a, b) for b in range(len(own)) for a in range(b))


def _writing(step: Step, place: tuple[slice, ...]) -> Rule:
    told = step.tensor().to(torch.float64)

    def write(block: torch.Tensor, before: torch.Tensor | None = None) -> torch.Tensor:
        whole = (told if before is None else before).clone()
        whole[place] = block
        return whole

    return write


def _rounding(step: Step) -> Rule:
    narrow = NARROW.get(step.dtype)
    if narrow is not None:
        return lambda a: a.to(torch.float32).to(narrow).to(torch.float64)
    if "INT" not in step.dtype:
        return lambda a: a
    ways = (torch.round, torch.trunc, torch.floor, torch.ceil)
    told = step.tensor().to(torch.float64)
    return lambda a: next((made for way in ways if (made := way(a)).equal(told)), torch.round(a))


def _exchanging(a: int, b: int) -> Rule:
    return lambda given: given.transpose(a, b)


def _reduction(op: Rule, axis: int) -> Rule:
    return lambda a: op(a, dim=axis, keepdim=True)


def _as_numbers(op: Rule) -> Rule:
    return lambda a, b: op(a, b).to(torch.float64)


def _product(left: bool, right: bool) -> Rule:
    return lambda a, b: (a.mT if left else a) @ (b.mT if right else b)


def _with_scalar(opcode: str, number: float) -> Iterator[Rule]:
    named = {"ADDS": "ADD", "SUBS": "SUB", "MULS": "MUL", "DIVS": "DIV", "MAXS": "MAXIMUM", "MINS": "MINIMUM"}.get(opcode)
    if named is not None:
        op, scalar = BINARY[named], torch.tensor(number, dtype=torch.float64)
        yield lambda a: op(a, scalar)
        yield lambda a: op(scalar, a)
    if opcode == "CMPS":
        yield from (lambda a, op=one: op(a, number).to(torch.float64) for one in _COMPARED)


def _choosing(step: Step, given: Sequence[torch.Tensor]) -> Iterator[Rule]:
    """Yield the choices between two values by a condition, whichever operand that is, and whether it keeps or drops."""
    number = torch.tensor(step.scalar if step.scalar is not None else 0.0, dtype=torch.float64)
    if len(given) == 2:
        yield lambda a, cond: torch.where(cond != 0, a, number)
        yield lambda cond, a: torch.where(cond != 0, a, number)
        yield lambda a, cond: torch.where(cond != 0, number, a)
        yield lambda cond, a: torch.where(cond != 0, number, a)
    if len(given) == 3:
        yield lambda cond, a, b: torch.where(cond != 0, a, b)
        yield lambda a, b, cond: torch.where(cond != 0, a, b)
