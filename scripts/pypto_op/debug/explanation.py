"""Finds the lines of a kernel to blame for a change that mends it: the operation's, and those of its number or condition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from pypto_op.compare import compare_leaves
from pypto_op.debug.changes import Change, Kind
from pypto_op.debug.divergence import Divergence
from pypto_op.debug.dump_files import Step
from pypto_op.debug.places import place, row_of
from pypto_op.debug.wanted import Backwards
from pypto_op.diagnose.kernel_names import KernelNames
from pypto_op.documents.policy import get_policy


def places(change: Change, text: KernelNames) -> list[dict[str, Any]]:
    """Return the places of a change that makes the outputs right, the likeliest first.

    A number that one line says and others use is at fault where it is said, unless only one of its uses is.
    """
    step = change.steps[0]
    kind = "misplaced" if change.kind is Kind.PLACE else "computed"
    own = row_of(Divergence(step, f"all that follows is right where this is {change.why}", same=(step.number,)), kind, text)
    callers = text.callers(step.line, step.function) if step.line else []
    named = _named_by(change, text)
    if named is not None:
        return [{**own, "line": named, "called_from": []}, *([] if named == step.line else [own])]
    if change.call is not None and change.call[1] > 1 and len(callers) > 1:  # one call of the helper is at fault, not the helper
        run, runs = change.call
        own |= {"line": callers[min(run * len(callers) // runs, len(callers) - 1)], "called_from": []}
    if change.kind is Kind.STEP and step.line:
        chosen = next((at for line in (step.line, *callers) if (at := text.choice_of(line)) is not None), None)
        if chosen is not None:
            why = f"chooses line {own['line']} in a turn that the other way belongs to"
            return [{**own, "line": chosen, "why": why, "called_from": []}, own]
    handed = text.used_next(step.line) if change.kind is Kind.FACTOR and change.operand < 0 and step.line else None
    if handed is not None:
        return [{**own, "line": handed, "why": f"hands back what line {own['line']} makes; a factor or a term is missing"}, own]
    said = text.number_of(step.line, step.opcode, step.scalar or 0.0) if change.kind is Kind.NUMBER and step.line else None
    if said is None or said == step.line:
        return [own]
    there = {**own, "line": said, "why": f"the number that line {step.line} takes is said here; all is right with another"}
    there |= {"called_from": []}
    lines = {one.line for one in change.steps}
    return [there, own] if len(lines) >= text.uses(said) else [own, there]


def _named_by(change: Change, text: KernelNames) -> int | None:
    """Return the line that names the wrong value: where two values have their names, or the call that hands it to a helper."""
    step = change.steps[0]
    if change.others:
        lines = [one.line for one in change.others if one.line is not None]
        if len(set(lines)) == 2 and len({text.function_of(line) for line in lines}) == 1:
            return max(lines)
    origin = change.others[0].line if change.others else change.origin
    if origin is None or step.line is None or text.function_of(origin) == text.function_of(step.line):
        return None
    callers = text.callers(step.line, step.function)
    own = text.function_of(step.line)
    if not callers or any(text.function_of(call) == own for call in text.callers(origin, step.function)):
        return None  # the value comes from a helper that this very function calls: the line itself names it
    run, runs = change.call or (0, 1)
    known_in = [*change.known_in, *(call for line in change.known_in for call in text.callers(line, step.function))]
    if runs == 1 and any(text.function_of(line) == own for line in known_in):
        return None  # the function has both values, and names the wrong one
    return callers[min(run * len(callers) // runs, len(callers) - 1)]


def exchanged(
    made: Sequence[torch.Tensor], expected: Sequence[torch.Tensor], wrong: Sequence[str], outputs: Sequence[str], wrapper: str,
    back: Backwards, numbers: Sequence[int], text: KernelNames,
) -> list[dict[str, Any]]:  # fmt: skip
    """Return the lines that exchange two outputs, or two arguments of the kernel.

    Args:
        wrong: names of the wrong ones.
        outputs: names of all, in order.
        wrapper: name of the function that returns them.
        back: knows which blocks the kernel wrote right.
        numbers: of the golden's outputs among its tensors.
    """
    crossed = text.exchanged_arguments()
    words = "hands an argument over in the place of another one"
    arguments = [place(line, "misplaced", "CALL", "", words) for line in crossed]
    off = [at for at, name in enumerate(outputs) if name in wrong]
    pairs = [(a, b) for a in off for b in off if a != b and _same(made[a], expected[b])]
    if not pairs:
        return arguments
    if not any(bad for _, _, bad in back.blocks(numbers, outputs)):  # the kernel wrote each to its own tensor
        told = f"{outputs[pairs[0][0]]} is returned as {outputs[pairs[0][1]]} should be"
        return arguments or [place(line, "misplaced", "RETURN", "", told) for line in text.returns(wrapper)]
    lines = sorted({line for a, _ in pairs for line in text.writes_to(outputs[a])})
    told = f"writes to {outputs[pairs[0][0]]} what belongs to {outputs[pairs[0][1]]}"
    return arguments + [place(line, "misplaced", "ASSEMBLE", "", told) for line in lines]


def _same(one: torch.Tensor, two: torch.Tensor) -> bool:
    if one.shape != two.shape or one.dtype != two.dtype:
        return False
    return bool(compare_leaves([one], [two], names=["it"], policy=get_policy("allclose@1")).all_close)


def conditions(found: Sequence[Divergence], steps: Mapping[int, Step], text: KernelNames) -> list[dict[str, Any]]:
    """Return the conditions on a turn that let a mask hide what is right, though it is right in other turns."""
    told = []
    for one in found:
        step = one.step
        if not one.sure or not step.opcode.startswith("WHERE") or step.line is None:
            continue
        alike = (steps[number] for number in one.well if number in steps)
        if not any((other.line, other.opcode) == (step.line, step.opcode) for other in alike):
            continue
        if not _operands_well(step, steps, one.well):
            continue
        near = [step.line, *text.callers(step.line, step.function)[:1]]
        guard = next((line for at in near if (line := text.guard_of(at)) is not None), None)
        if guard is not None:
            words = f"lets line {step.line} hide something in this turn too, where the golden does not"
            told.append({**row_of(one, "computed", text), "line": guard, "why": words, "called_from": []})
    return told[:1]


def _operands_well(step: Step, steps: Mapping[int, Step], well: frozenset[int]) -> bool:
    """Say whether all operands are right, or made of no input at all."""
    return bool(step.parents) and all(number in well or _of_no_input(steps[number], steps) for number in step.parents)


def _of_no_input(step: Step, steps: Mapping[int, Step]) -> bool:
    waiting, seen = [step.number], set()
    while waiting:
        one = steps[waiting.pop()]
        if one.number in seen:
            continue
        seen.add(one.number)
        if one.given:
            return False
        waiting += one.parents
    return True
