"""Computes backwards from a wrong output what each earlier result of the kernel should have been.

`divergence` comes from the front: the first result that is none of the golden's. Where a kernel's formula is not the golden's
that one may be right, and the edit lies further on. From behind an output's wanted block is known; operations that can be turned
round hand it on to the one operand that is not right, until none is, or none can be turned round. Each wanted result on that way
is a place where one edit would make all that follows right.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch

from pypto_op.debug.dump_files import Step, slices, without_ones
from pypto_op.debug.matching import KINDS, Golden, kind_of, rounding_of, says_little
from pypto_op.debug.rerun import BINARY, NARROW

_MOST_DEEP = 120
"""Results on the way from one output's block."""

_TURNED: Mapping[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "EXP": torch.log,
    "LN": torch.exp,
    "SQRT": torch.square,
    "RSQRT": lambda wanted: 1 / wanted.square(),
    "RECIPROCAL": torch.reciprocal,
    "NEG": torch.neg,
    "CAST": torch.clone,
}
_TURNED_OF_TWO = ("ADD", "SUB", "MUL", "DIV")
_SCALAR = ("ADDS", "SUBS", "MULS", "DIVS")


@dataclass(frozen=True)
class Want:
    """A result that is wrong, and what it would have to be."""

    step: Step  # whose result it is
    value: torch.Tensor  # float64, of the result's shape
    operands_well: bool = False  # all operands of the step are right


class Backwards:
    """Walks from an output's wrong blocks towards the inputs.

    Args:
        well: numbers of the steps whose results are right: the golden's own, or what those were computed from.
    """

    def __init__(self, steps: Sequence[Step], golden: Golden, well: frozenset[int]) -> None:
        self._golden, self._well = golden, well
        self._by_number = {step.number: step for step in steps}
        self._by_name = {step.name: step for step in steps}
        self._values: dict[int, torch.Tensor] = {}
        self._steps = steps
        self._written = frozenset(step.symbol for step in steps if step.opcode == "ASSEMBLE")

    @property
    def inputs(self) -> Sequence[torch.Tensor]:
        """The golden's inputs: what the kernel was given, too."""
        return self._golden.inputs

    def value(self, step: Step) -> torch.Tensor:
        """Return a step's result in float64."""
        if step.number not in self._values:
            self._values[step.number] = step.tensor().to(torch.float64)
        return self._values[step.number]

    def is_well(self, step: Step) -> bool:
        """Say whether a step's result is right as it stands; a number that the kernel fills in is."""
        return step.number in self._well or not (step.inputs or step.parents or step.given)

    def alike(self, one: torch.Tensor, two: torch.Tensor, step: Step) -> bool:
        """Say whether two tensors differ by no more than rounding in the dtype of a step's result."""
        return alike(one, two, rounding_of(self.dtype(step)))

    @staticmethod
    def dtype(step: Step) -> torch.dtype:
        """Return the dtype of a step's result, as far as it matters for rounding."""
        return NARROW.get(step.dtype, torch.float32)

    def wants(self, outputs: Sequence[int], names: Sequence[str]) -> list[Want]:
        """Return the wrong results on the ways from the first wrong block of each output, first ones of the run first.

        Args:
            outputs: numbers of the golden's outputs among its tensors.
            names: of the outputs, by which the kernel's writes may call them.
        """
        found: dict[int, Want] = {}
        for want in self._ends(outputs, names):
            self._walk(want, found)
        return [found[number] for number in sorted(found)]

    def given(self, step: Step) -> list[Step]:
        """Return the operands in their order; the writer of what a view of a whole tensor reads."""
        named = [self._by_name[name] for name in step.inputs if name in self._by_name]
        return named if len(named) == len(step.inputs) and named else [self._by_number[one] for one in step.parents]

    def blocks(self, outputs: Sequence[int], names: Sequence[str]) -> Iterator[tuple[int, Want, bool]]:
        """Yield, for each block that is written to an output: the output's tensor, what the block must be, whether it is wrong.

        Args:
            outputs: numbers of the golden's outputs among its tensors.
            names: of the outputs, by which the kernel's writes may call them.
        """
        for step in self._steps:
            if step.opcode != "ASSEMBLE" or not step.names_tensor:
                continue
            tensor = self._output(step, outputs, names)
            made = self._by_number.get(max(step.parents, default=0))
            if tensor is None or made is None or len(made.valid) != len(step.offset):
                continue
            whole = self._golden.tensors[tensor].to(torch.float64).reshape(step.valid)
            wanted = whole[slices(step.offset, made.valid)]
            if wanted.shape == made.valid:
                yield tensor, Want(made, wanted), not self.alike(self.value(made), wanted, made)

    def _ends(self, outputs: Sequence[int], names: Sequence[str]) -> Iterator[Want]:
        """Yield, for each output, the first block that is written wrong."""
        done: set[int] = set()
        for tensor, want, wrong in self.blocks(outputs, names):
            if wrong and tensor not in done and not says_little(want.value):
                done.add(tensor)
                yield want

    def _output(self, step: Step, outputs: Sequence[int], names: Sequence[str]) -> int | None:
        if step.symbol in names and len(names) == len(outputs):
            number = outputs[list(names).index(step.symbol)]
            return number if math.prod(self._golden.shapes[number]) == math.prod(step.valid) else None
        if self._written.issuperset(names):  # what is written under other names is no output, whatever its shape
            return None
        same = [one for one in outputs if without_ones(self._golden.shapes[one]) == without_ones(step.valid)]
        return same[0] if len(same) == 1 else None

    def _walk(self, end: Want, found: dict[int, Want]) -> None:
        waiting = [end]
        while waiting and len(found) < _MOST_DEEP:
            want = waiting.pop()
            if want.step.number in found:
                continue
            operands = self.given(want.step)
            well = bool(operands) and all(self.is_well(one) for one in operands)
            found[want.step.number] = Want(want.step, want.value, well)
            for operand, value in self._handed_on(want, operands):
                off = value.shape == operand.valid and bool(value.isfinite().all()) and not says_little(value)
                if off and not self.is_well(operand) and not self.alike(self.value(operand), value, operand):
                    waiting.append(Want(operand, value))

    def _handed_on(self, want: Want, operands: list[Step]) -> Iterator[tuple[Step, torch.Tensor]]:
        """Yield what a wanted result asks of the operands that are not right."""
        step, value = want.step, want.value
        if step.moves and len(operands) == 1:
            moved = self._moved(step, value, operands[0])
            if moved is not None:
                yield operands[0], moved
        elif len(operands) == 1 and step.opcode in _TURNED:
            yield operands[0], _TURNED[step.opcode](value)
        elif len(operands) == 1 and step.opcode in _SCALAR:
            turned = _line_through(self.value(operands[0]), self.value(step), value)
            if turned is not None:
                yield operands[0], turned
        elif len(operands) == 2 and step.opcode in _TURNED_OF_TWO:
            off = [at for at, one in enumerate(operands) if not self.is_well(one)]
            if len(off) == 1:
                asked = self.asked_of(step, value, operands, off[0])
                if asked is not None:
                    yield operands[off[0]], asked
            elif len(off) == 2:
                yield from self._as_the_golden(step, value, operands)

    def asked_of(self, step: Step, wanted: torch.Tensor, operands: Sequence[Step], at: int) -> torch.Tensor | None:
        """Return what one operand of two would have to be, None where nothing makes the result right."""
        other, own = self.value(operands[1 - at]), operands[at]
        turned = {
            "ADD": lambda: wanted - other,
            "SUB": lambda: wanted + other if at == 0 else other - wanted,
            "MUL": lambda: wanted / other,
            "DIV": lambda: wanted * other if at == 0 else other / wanted,
        }[step.opcode]()
        weight = {"MUL": other.expand(wanted.shape), "DIV": wanted}.get(step.opcode, turned)  # where it is told best
        asked = _narrowed(turned, own.valid, weight)
        if asked is None:
            return None
        pair = (asked, other) if at == 0 else (other, asked)
        made = BINARY[step.opcode](*pair)
        return asked if made.shape == wanted.shape and self.alike(made, wanted, step) else None

    def _moved(self, step: Step, wanted: torch.Tensor, parent: Step) -> torch.Tensor | None:
        """Return what an operation that only moves its operand asks of it."""
        if step.opcode == "ASSEMBLE" and len(step.offset) == len(parent.valid):
            return wanted[slices(step.offset, parent.valid)]
        if wanted.shape == parent.valid and step.opcode != "TRANSPOSE":
            return wanted
        if step.opcode == "VIEW" and len(step.offset) == len(parent.valid) == wanted.dim():
            whole = self.value(parent).clone()
            part = slices(step.offset, step.valid)
            if whole[part].shape == wanted.shape:
                whole[part] = wanted
                return whole
        if step.opcode == "EXPAND":
            return _narrowed(wanted, parent.valid, wanted)
        if step.opcode == "RESHAPE" and wanted.numel() == math.prod(parent.valid):
            return wanted.reshape(parent.valid)
        return None

    def _as_the_golden(self, step: Step, wanted: torch.Tensor, operands: Sequence[Step]) -> Iterator[tuple[Step, torch.Tensor]]:
        """Yield the operands that the golden has for a wanted result that it makes by the same operation."""
        for tensor, batch, row, column in self._golden.where(wanted, rounding_of(self.dtype(step))):
            for made in self._golden.made_by.get(tensor, ()):
                given = [int(one) for one in made["inputs"]]
                if made["op"] not in KINDS.get(kind_of(step.opcode), ()) or len(given) != 2:
                    continue
                for operand, one in zip(operands, self._paired(operands, given), strict=True):
                    block = self._golden.block(one, batch, (row, column), operand.valid)
                    if block is not None:
                        yield operand, block
                return

    def _paired(self, operands: Sequence[Step], given: list[int]) -> list[int]:
        """Return the golden's operands in the order of the kernel's: those that were made by a like operation stand together."""

        def likeness(order: Sequence[int]) -> int:
            return sum(
                any(row["op"] in KINDS.get(kind, ()) for row in self._golden.made_by.get(one, ()))
                for one, kind in zip(order, kinds, strict=True)
            )

        kinds = [kind_of(self._through_moves(one).opcode) for one in operands]
        return max((given, given[::-1]), key=likeness)

    def _through_moves(self, step: Step) -> Step:
        while step.moves and len(step.parents) == 1:
            step = self._by_number[step.parents[0]]
        return step


def alike(one: torch.Tensor, two: torch.Tensor, relative: float) -> bool:
    """Say whether two tensors of one shape differ by no more than a relative error, of the largest number and of each."""
    finite = torch.where(two.isfinite(), two.abs(), torch.zeros_like(two))
    allowed = relative * float(finite.max()) if finite.numel() else 0.0
    return bool((((one - two).abs() <= allowed + relative * two.abs()) | (one == two)).all())


def _narrowed(wide: torch.Tensor, shape: Sequence[int], weight: torch.Tensor) -> torch.Tensor | None:
    """Return one number for each axis that an operand is spread along: that of the place where `weight` is largest."""
    if wide.dim() != len(shape):
        return None
    weight = torch.where(weight.isfinite(), weight.abs(), torch.zeros_like(weight))
    for axis, size in enumerate(shape):
        if size == 1 and wide.shape[axis] > 1:
            at = weight.argmax(axis, keepdim=True)
            wide, weight = wide.gather(axis, at), weight.gather(axis, at)
    return wide if wide.shape == tuple(shape) else None


def _line_through(given: torch.Tensor, made: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor | None:
    """Return what an operation with one number, whose operand and result are known, asks of its operand."""
    x, y = given.reshape(-1), made.reshape(-1)
    low, high = int(x.argmin()), int(x.argmax())
    if x.shape != y.shape or float(x[high]) == float(x[low]):
        return None
    slope = (y[high] - y[low]) / (x[high] - x[low])
    if not bool(slope.isfinite()) or float(slope) == 0.0 or not alike(slope * (x - x[low]) + y[low], y, 1e-3):
        return None
    return (wanted - y[low]) / slope + x[low]
