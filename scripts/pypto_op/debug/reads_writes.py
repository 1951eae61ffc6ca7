"""Finds blocks that are read from or written to the wrong place, and what no turn of a loop reads or writes."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pypto_op.debug.divergence import Divergence, same_operations
from pypto_op.debug.dump_files import Step, slices, without_ones
from pypto_op.debug.matching import Golden, says_little
from pypto_op.diagnose.kernel_loops import KernelLoops

if TYPE_CHECKING:
    import torch


def misplaced(steps: Sequence[Step], golden: Golden, outputs: Sequence[int]) -> list[Divergence]:
    """Return writes that put a right block of an output at the place of another, with the view that read the wrong one.

    Args:
        outputs: numbers of the golden's outputs among its tensors.
    """
    by_number = {step.number: step for step in steps}
    shapes = {without_ones(golden.shapes[number]) for number in outputs}
    found = []
    for step in steps:
        if step.opcode != "ASSEMBLE" or not step.names_tensor:
            continue
        parent = by_number.get(max(step.parents, default=0))
        if without_ones(step.valid) not in shapes:
            continue
        if parent is None or len(step.offset) < 2 or len(step.offset) != len(step.valid) or says_little(value := parent.tensor()):
            continue
        found_there = golden.matches(value)
        places = {place for match in found_there if match.tensor in outputs for place in match.places}
        if found_there and not places:
            line = found_there[0].line
            where = f"has at line {line}" if line else "takes as an input"
            found.append(Divergence(parent, f"writes what the golden {where}, which is no output of it"))
            continue
        target = _as_matrix(step)
        if places and target not in places:
            view = _reader(parent, by_number, places)
            place = sorted(places)[0]
            if view is not None and len(_moved_inputs(parent, by_number, place, target)) < 2:
                words = f"reads the block at {list(place)}; its result is written at {list(target)}"
                found.append(Divergence(view, words, same=same_operations(steps, view)))
            else:
                found.append(Divergence(step, f"writes at {list(target)} what belongs at {list(place)}"))
    return found


@dataclass(frozen=True)
class Gap:
    """A tensor of the kernel's arguments of which a loop leaves out a part."""

    name: str  # of the tensor, "" where pypto tells none
    axis: int  # the one that is left short, counted from 0
    indices: list[str]  # names of the loops that may move along it
    graph: str  # a function of pypto that writes or reads the tensor
    twice: bool = False  # some of it is written more than once, so the offset of the write is at fault and no bound of a loop
    idle: tuple[str, ...] = ()  # those of `indices` whose loops have turns that do not write the tensor at all
    cut: bool = False  # the last write along the axis is shorter than the others, and yet ends before the tensor does


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
            groups.setdefault((loop.name, whole.content), []).append(step)
    gaps: list[Gap | Divergence] = []
    for views in groups.values():
        read = torch.zeros(by_number[views[0].parents[0]].valid, dtype=torch.bool)
        for step in views:
            read[slices(step.offset, step.valid)] = True
        of_golden = golden.is_input(by_number[views[0].parents[0]].tensor())
        # Room of the wrapper's is filled between the turns; only inputs are there to be read whole.
        if of_golden and not bool(read.all()) and len({step.offset for step in views}) > 1:
            axis = _short_axis(read)
            still = len({step.offset[axis] for step in views}) == 1
            if still and views[0].line and _idle_loop(views):
                words = f"every turn reads the same part of axis {axis} of an input: nothing moves its offset"
                gaps.append(Divergence(views[0], words, same=same_operations(steps, views[0])))
            else:
                gaps.append(Gap("", axis, _loops_along(views, axis), views[0].function))
    return gaps


def unpicked(steps: Sequence[Step], golden: Golden) -> list[Divergence]:
    """Return the reads of an input that some loop does not move, while the golden picks entries that no turn reads."""
    import torch

    by_number = {step.number: step for step in steps}
    groups: dict[tuple[bytes, int], list[Step]] = {}
    for step in steps:
        whole = by_number.get(step.parents[0]) if len(step.parents) == 1 else None
        if (
            step.opcode == "VIEW"
            and step.line
            and whole is not None
            and whole.given
            and len(step.offset) == len(whole.valid) == 2
        ):
            groups.setdefault((whole.content, step.line), []).append(step)
    found = []
    for views in groups.values():
        whole = by_number[views[0].parents[0]]
        picked = golden.picked(whole.tensor()) if _idle_loop(views) else None
        if picked is None or whole.valid[0] % len(picked):
            continue
        read, size = torch.zeros(len(picked), dtype=torch.bool), whole.valid[0] // len(picked)
        for step in views:
            read[step.offset[0] // size : -(-(step.offset[0] + step.valid[0]) // size)] = True
        if bool((picked & ~read).any()):
            words = "the golden picks entries that no turn reads, and a loop moves this read nowhere"
            found.append(Divergence(views[0], words, same=same_operations(steps, views[0])))
    return found


def uncovered(steps: Sequence[Step], outputs: Collection[str]) -> list[Gap]:
    """Return the tensors that no write covers; axes are counted from 0.

    Args:
        steps: of the run; what is written in none of them is not told.
        outputs: names of the kernel's outputs; where none is written by its name, states are looked at too.
    """
    import torch

    by_number = {step.number: step for step in steps}
    written = [step for step in steps if step.opcode == "ASSEMBLE"]
    wanted = {step.symbol for step in written} & set(outputs) or {step.symbol for step in written if step.names_tensor}
    groups: dict[str, list[tuple[Step, Step]]] = {}
    for step in steps:
        parent = by_number.get(max(step.parents, default=0))
        if step.opcode == "ASSEMBLE" and step.symbol in wanted and parent is not None and len(step.offset) == len(step.valid):
            groups.setdefault(step.symbol, []).append((step, parent))
    short = []
    for name, writes in groups.items():
        count = torch.zeros(writes[0][0].valid, dtype=torch.int32)
        for step, parent in writes:
            if step.valid != writes[0][0].valid or len(parent.valid) != len(step.offset):
                break
            count[slices(step.offset, parent.valid)] += 1
        else:
            if not bool(count.all()):
                axis = _short_axis(count > 0)
                indices = _loops_along([step for step, _ in writes], axis)
                twice = bool((count > 1).any())
                own = [one for one, _ in writes]
                idle = tuple(index for index in indices if _turns(own, index) < _turns(steps, index))
                gap = Gap(name, axis, indices, writes[0][0].function, twice, idle, _is_cut(writes, axis))
                short.append(gap)
    return short


def _turns(steps: Sequence[Step], index: str) -> set[int]:
    return {turn for step in steps for name, turn in step.loops if name == index}


def _is_cut(writes: Sequence[tuple[Step, Step]], axis: int) -> bool:
    """Say whether the last block along an axis is shorter than others before it."""
    sizes: dict[int, int] = {}
    for step, parent in writes:
        sizes[step.offset[axis]] = max(parent.valid[axis], sizes.get(step.offset[axis], 0))
    return sizes[max(sizes)] < max(sizes.values())


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


def _moved_inputs(step: Step, by_number: dict[int, Step], place: tuple[int, int], target: tuple[int, int]) -> set[bytes]:
    """Return the inputs that a written block was read from as it belongs at `place`, not at `target`.

    Where two of them agree on that, the write is off: one edit explains it, where the reads would take two.
    """
    found: set[bytes] = set()
    for one in _in_turn(step, by_number):
        whole = by_number[one.parents[0]] if len(one.parents) == 1 else one
        if one.opcode != "VIEW" or not whole.given or len(one.offset) != len(whole.valid) or len(one.offset) < 2:
            continue
        axes = [axis for axis in (-2, -1) if one.valid[axis] < whole.valid[axis] and place[axis] != target[axis]]
        if any(one.offset[axis] == place[axis] for axis in axes):
            found.add(whole.content)
    return found


def misjoined(steps: Sequence[Step], found: Sequence[Divergence]) -> list[Divergence]:
    """Return the reads of inputs that are joined with blocks of another place, where a first wrong result is made of them.

    An operand of an operation by elements belongs to the place that its result is written at, along each axis that it covers.

    Args:
        found: the first operations whose result is off.
    """
    by_number = {step.number: step for step in steps}
    read: list[Divergence] = []
    for one in found:
        step = one.step
        kind = step.opcode in ("ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM")
        target = _destination(step, steps) if kind and all(parent in one.well for parent in step.parents) else None
        views = [_input_view(by_number[parent], by_number) for parent in step.parents]
        for view in views:
            if target is None or view is None or len(view.offset) != len(target):
                continue
            axes = [axis for axis, size in enumerate(view.valid) if size == step.valid[axis] > 1]
            if any(view.offset[axis] != target[axis] for axis in axes):
                words = f"reads at {list(view.offset)} what is joined with the block that is written at {list(target)}"
                read.append(Divergence(view, words, same=same_operations(steps, view)))
    return read if len({one.step.line for one in read}) == 1 else []


def other_batch(steps: Sequence[Step], outputs: Collection[str]) -> list[Divergence]:
    """Return the reads of an input's first axis at another place than that of the block of an output made of it.

    Told only where another input with as many entries is read at the output's place, and where one line of the kernel does it.
    """
    by_number = {step.number: step for step in steps}
    found: list[Divergence] = []
    for step in steps:
        if step.opcode != "ASSEMBLE" or step.symbol not in outputs or len(step.offset) < 3:
            continue
        read = [(one, _entries_of(one, by_number)) for one in _in_turn(step, by_number)]
        off, well = list[tuple[Step, int]](), set[int]()
        for one, count in read:
            if count and step.valid[0] % count == 0:  # query heads of an output may share the key heads of an input, in order
                if one.offset[0] == step.offset[0] * count // step.valid[0]:
                    well.add(count)
                else:
                    off.append((one, count))
        if off and len({one.line for one, _ in off}) == 1 and all(count in well for _, count in off):
            first = off[0][0]
            words = f"reads at {first.offset[0]} of the first axis what is written at {step.offset[0]} of it"
            found.append(Divergence(first, words, same=same_operations(steps, first)))
    return found


def _entries_of(step: Step, by_number: dict[int, Step]) -> int:
    """Return how many entries the first of three axes of a whole tensor has of which a step reads one; 0 for another step."""
    whole = by_number[step.parents[0]] if step.opcode == "VIEW" and len(step.parents) == 1 else None
    if whole is None or not whole.given or not len(step.offset) == 3 == len(whole.valid):
        return 0
    return whole.valid[0] if step.valid[0] == 1 < whole.valid[0] else 0


def _destination(step: Step, steps: Sequence[Step]) -> tuple[int, ...] | None:
    """Return where a result ends up in an output by operations that keep its shape, None where it does in none."""
    carried = {step.number}
    for one in steps:
        if one.number <= step.number or not carried & set(one.parents):
            continue
        if one.opcode == "ASSEMBLE":
            if one.names_tensor and len(one.offset) == len(step.valid):
                return one.offset
        elif one.valid == step.valid:
            carried.add(one.number)
    return None


def _input_view(step: Step, by_number: dict[int, Step]) -> Step | None:
    """Return the view of an input that a result only moves or casts on, None for a result that was computed."""
    while len(step.parents) == 1:
        parent = by_number[step.parents[0]]
        if step.opcode == "VIEW" and parent.given and step.line and not parent.parents:
            return step if len(step.offset) == len(parent.valid) else None
        if not (step.moves or step.opcode == "CAST"):
            return None
        step = parent
    return None


def _in_turn(step: Step, by_number: dict[int, Step]) -> list[Step]:
    """Return what a result was computed from within its turn."""
    waiting, seen = [step.number], {}
    while waiting:
        one = by_number[waiting.pop()]
        if one.number not in seen and (one.function, one.loops) == (step.function, step.loops):
            seen[one.number] = one
            waiting += one.parents
    return list(seen.values())


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
