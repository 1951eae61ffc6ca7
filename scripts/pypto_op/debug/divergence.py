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

from pypto_op.debug.dump_files import Step, content
from pypto_op.debug.matching import KINDS, Golden, Match, kind_of, rounding_of, says_little
from pypto_op.diagnose.kernel_loops import KernelLoops

if TYPE_CHECKING:
    import torch

_FEW = 4
"""Fewer numbers may be equal by chance."""

_MUTE = "the same number everywhere, though an operand is not; nothing right is computed from it"
TIGHTNESS = (1.0, 0.1, 0.01)
"""What counts as rounding, tried in turn: a fault may be smaller than the first."""


class Standing(Enum):
    """How a result stands to the golden."""

    AGREES = "agrees"
    PART = "part"
    SILENT = "silent"
    OFF = "off"


@dataclass(frozen=True)
class Divergence:
    """A place where the kernel leaves the golden.

    Attributes:
        step: the operation.
        why: one sentence.
        sure: the result is none of the golden's, not only a part of one that never becomes whole.
        same: the operations of this line, opcode and turn, in order; several where a helper is called several times.
        well: operations whose result agrees with the golden, or leads to something that does.
    """

    step: Step
    why: str
    sure: bool = True
    same: tuple[int, ...] = ()
    well: frozenset[int] = frozenset()

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


def first_divergences(steps: Sequence[Step], golden: Golden) -> list[Divergence]:
    """Return the operations whose result is off though all their operands are well, first ones first."""
    values = {step.number: step.tensor() for step in steps}
    for tightness in TIGHTNESS:
        found = _at(steps, golden, values, tightness)
        if found:
            return found
    return []


def misplaced(steps: Sequence[Step], golden: Golden, outputs: Sequence[int]) -> list[Divergence]:
    """Return writes that put a right block of an output at the place of another, with the view that read the wrong one.

    Args:
        outputs: numbers of the golden's outputs among its tensors.
    """
    by_number = {step.number: step for step in steps}
    shapes = {_without_ones(golden.shapes[number]) for number in outputs}
    found = []
    for step in steps:
        if step.opcode != "ASSEMBLE" or not step.symbol or step.symbol.startswith(("View_", "OUTCAST")):
            continue
        parent = by_number.get(max(step.parents, default=0))
        if _without_ones(step.valid) not in shapes:
            continue
        if parent is None or len(step.offset) < 2 or len(step.offset) != len(step.valid) or says_little(value := parent.tensor()):
            continue
        found_there = golden.matches(value)
        places = {place for match in found_there if match.tensor in outputs for place in match.places}
        if found_there and not places:
            words = f"writes what the golden has at line {found_there[0].line or '?'}, which is no output of it"
            found.append(Divergence(parent, words))
            continue
        target = _as_matrix(step)
        if places and target not in places:
            view = _reader(parent, by_number, places)
            place = sorted(places)[0]
            if view is not None:
                words = f"reads the block at {list(place)}; its result is written at {list(target)}"
                found.append(Divergence(view, words, same=_same(steps, view)))
            else:
                found.append(Divergence(step, f"writes at {list(target)} what belongs at {list(place)}"))
    return found


@dataclass(frozen=True)
class Gap:
    """A tensor of the kernel's arguments of which a loop leaves out a part.

    Attributes:
        name: of the tensor, "" where pypto tells none.
        axis: the one that is left short, counted from 0.
        indices: names of the loops that may move along it.
        graph: a function of pypto that writes or reads the tensor.
        twice: some of it is written more than once, so the offset of the write is at fault and no bound of a loop.
    """

    name: str
    axis: int
    indices: list[str]
    graph: str
    twice: bool = False


def unread(steps: Sequence[Step], text: KernelLoops, golden: Golden) -> list[Gap | Divergence]:
    """Return the inputs of which a loop reads a part only: a reduction over tiles that stops short.

    Where no loop moves along an axis that is left short the view's own offset is at fault, not the bound of a loop.
    """
    import torch

    by_number = {step.number: step for step in steps}
    groups: dict[tuple[str, bytes], list[Step]] = {}
    for step in steps:
        whole = by_number.get(step.parents[0]) if len(step.parents) == 1 else None
        loop = text.of_graph(step.function)
        if step.opcode != "VIEW" or whole is None or not whole.given or loop is None or len(step.offset) != len(whole.valid):
            continue
        if len(step.valid) == len(whole.valid):
            groups.setdefault((loop.name, content(whole)), []).append(step)
    gaps: list[Gap | Divergence] = []
    for views in groups.values():
        read = torch.zeros(by_number[views[0].parents[0]].valid, dtype=torch.bool)
        for step in views:
            read[tuple(slice(at, at + size) for at, size in zip(step.offset, step.valid, strict=True))] = True
        of_golden = golden.is_input(by_number[views[0].parents[0]].tensor())
        # Room of the wrapper's is filled between the turns; only inputs are there to be read whole.
        if of_golden and not bool(read.all()) and len({step.offset for step in views}) > 1:
            axis = _short_axis(read)
            still = len({step.offset[axis] for step in views}) == 1
            if still and views[0].line and _idle_loop(views):
                words = f"every turn reads the same part of axis {axis} of an input: nothing moves its offset"
                gaps.append(Divergence(views[0], words, same=_same(steps, views[0])))
            else:
                gaps.append(Gap("", axis, _loops_along(views, axis), views[0].function))
    return gaps


def uncovered(steps: Sequence[Step]) -> list[Gap]:
    """Return the tensors that no write covers.

    Only tensors of the kernel's arguments whose writes were seen; axes are counted from 0.
    """
    import torch

    by_number = {step.number: step for step in steps}
    groups: dict[str, list[tuple[Step, Step]]] = {}
    for step in steps:
        parent = by_number.get(max(step.parents, default=0))
        named = step.symbol and not step.symbol.startswith(("View_", "OUTCAST"))
        if step.opcode == "ASSEMBLE" and named and parent is not None and len(step.offset) == len(step.valid):
            groups.setdefault(step.symbol, []).append((step, parent))
    short = []
    for name, writes in groups.items():
        count = torch.zeros(writes[0][0].valid, dtype=torch.int32)
        for step, parent in writes:
            if step.valid != writes[0][0].valid or len(parent.valid) != len(step.offset):
                break
            count[tuple(slice(at, at + size) for at, size in zip(step.offset, parent.valid, strict=True))] += 1
        else:
            if not bool(count.all()):
                axis = _short_axis(count > 0)
                indices = _loops_along([step for step, _ in writes], axis)
                short.append(Gap(name, axis, indices, writes[0][0].function, bool((count > 1).any())))
    return short


def _at(steps: Sequence[Step], golden: Golden, values: dict[int, torch.Tensor], tightness: float) -> list[Divergence]:
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
    cleared = _lead_back(steps, standing)
    left = {step.number for step in steps if standing[step.number] is Standing.OFF and step.number not in cleared}
    sure = bool(left)
    if not left:  # parts, all of them, and yet nothing right came of these
        left = {step.number for step in steps if standing[step.number] is Standing.PART and step.number not in cleared}
    first = [step for step in steps if step.number in left and not left & set(step.parents)]
    # Where a state is moved from turn to turn its contents are off because of what was computed before.
    computed = [step for step in first if not step.moves] or first
    well = cleared | {number for number, how in standing.items() if how is Standing.AGREES}
    placed = [step for step in computed if step.line is not None]
    if not placed:
        return [Divergence(step, _MUTE) for step in _muted(steps, standing, cleared, values)]
    return [Divergence(step, _why(step, golden, matches), sure, _same(steps, step), frozenset(well)) for step in placed]


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


def _same(steps: Sequence[Step], step: Step) -> tuple[int, ...]:
    key = (step.line, step.opcode, step.loops, step.function)
    return tuple(one.number for one in steps if (one.line, one.opcode, one.loops, one.function) == key)


def _rounding(steps: Sequence[Step], values: dict[int, torch.Tensor]) -> dict[int, float]:
    """Return what counts as rounding for each result: 16 bits excuse something only where the kernel's inputs have no more."""
    own = {step.number: rounding_of(values[step.number].dtype) for step in steps}
    least = min(own.values(), default=0.0)
    if not any(step.given and own[step.number] > least for step in steps):
        return dict.fromkeys(own, least)
    return {step.number: max(own[one] for one in (step.number, *step.parents)) for step in steps}


def _lead_back(steps: Sequence[Step], standing: dict[int, Standing]) -> set[int]:
    """Return the steps from which something that agrees was computed."""
    cleared: set[int] = set()
    for step in reversed(steps):
        if step.number in cleared or standing[step.number] is Standing.AGREES:
            cleared.update(step.parents)
    return cleared


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


def _as_matrix(step: Step) -> tuple[int, int]:
    """Return where a write begins in its target seen as `Golden` sees it: a matrix, axes of size 1 left out."""
    kept = [at for at, size in zip(step.offset, step.valid, strict=True) if size != 1]
    row, column = [*kept, 0, 0][:2] if len(kept) < 2 else kept[-2:]
    return row, column


def _reader(step: Step, by_number: dict[int, Step], places: set[tuple[int, int]]) -> Step | None:
    waiting, seen = [step.number], set()
    while waiting:
        one = by_number[waiting.pop(0)]
        if one.number in seen:
            continue
        seen.add(one.number)
        large = math.prod(one.valid) * 2 > math.prod(step.valid)
        if one.opcode == "VIEW" and one.line and large and len(one.offset) >= 2 and one.offset[-2:] in places:
            return one
        waiting += one.parents
    return None


def _without_ones(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(size for size in shape if size != 1)


def _short_axis(whole: torch.Tensor) -> int:
    for axis in range(whole.dim()):
        others = tuple(other for other in range(whole.dim()) if other != axis)
        if not bool((whole.any(dim=others) if others else whole).all()):
            return axis
    return 0


def _loops_along(writes: Sequence[Step], axis: int) -> list[str]:
    """Return the loops that may move along an axis, innermost first: those that do, else those that move along no other."""
    names = [name for name, _ in writes[0].loops if not name.startswith("loop_idx_")]
    moves = {name: [_moves(writes, name, one) for one in range(len(writes[0].offset))] for name in names}
    along = [name for name in names if moves[name][axis]]
    return along or [name for name in names if not any(moves[name])] or names


def _idle_loop(views: Sequence[Step]) -> bool:
    """Say whether a loop of several turns moves these views along no axis."""
    names = [name for name, _ in views[0].loops if not name.startswith("loop_idx_")]
    turns = {name: {dict(step.loops).get(name) for step in views} for name in names}
    axes = range(len(views[0].offset))
    return any(len(turns[name]) > 1 and not any(_moves(views, name, axis) for axis in axes) for name in names)


def _moves(writes: Sequence[Step], name: str, axis: int) -> bool:
    places: dict[int, set[int]] = {}
    for step in writes:
        places.setdefault(dict(step.loops).get(name, 0), set()).add(step.offset[axis])
    sets = list(places.values())
    return len(sets) > 1 and not set.intersection(*sets)
