"""Finds outputs that far elements hardly move: softmax(0.01 x) over a million elements hardly depends on its sum.

The reference runs once more with half of the elements exchanged for others of the same tensor. Where the outputs at the other
half change, but by less than the policy sees, a kernel with a constant in the place of the sum would pass. Then the kernel's own
error decides: far below that change, it computes what the others add.
"""

from __future__ import annotations

from typing import Any

import torch

from pypto_op.documents.policy import Policy
from pypto_op.triton.run.inputs.packing import map_tensors, tensors_of
from pypto_op.triton.run.judging.judgement import Judgement, compare
from pypto_op.triton.run.judging.natural import FACTOR
from pypto_op.triton.run.judging.trivial import rms, sample

_LEAST = 256
"""Fewer elements than this: each of them matters."""
_PART = 0.25
"""An error below this part of the change is not that of a kernel that leaves the others out."""


def shapes_of(inputs: Any, outputs: Any) -> list[torch.Size]:
    """Return the shapes that floating inputs and outputs have in common: there one element's output has a place of its own."""
    both = [{value.shape for value in tensors_of(side) if value.is_floating_point()} for side in (inputs, outputs)]
    return sorted(shape for shape in both[0] & both[1] if shape.numel() >= _LEAST)


def exchanged(inputs: Any, shapes: list[torch.Size]) -> Any:
    """Return inputs of which tensors of these shapes have about half of their elements from elsewhere in the same tensor."""

    def one(value: torch.Tensor) -> torch.Tensor:
        if value.shape not in shapes or not value.is_floating_point():
            return value.clone()
        draws = torch.Generator(value.device).manual_seed(0)
        from_where = torch.randint(value.numel(), (value.numel(),), generator=draws, device=value.device)
        others = value.reshape(-1)[from_where].reshape(value.shape)
        return torch.where(_kept(value), value, others)

    return map_tensors(inputs, one)


def judged(
    shapes: list[torch.Size], outputs: Any, answer: Any, exchanged_outputs: list[torch.Tensor], policy: Policy, truth: Any
) -> tuple[Judgement | None, list[str]]:
    """Return what is wrong with an answer, None for nothing, and one line for each output that cannot be told.

    Args:
        shapes: those of `shapes_of`.
        outputs, answer: of reference and implementation; the policy found them alike.
        exchanged_outputs: `sample` of what the reference returns for `exchanged` inputs, output by output.
        policy: the tolerance.
        truth: called without arguments: the reference's outputs in float64, or None.
    """
    lines: list[str] = []
    for position, (whole, got) in enumerate(zip(tensors_of(outputs), tensors_of(answer), strict=True)):
        if whole.shape not in shapes or not whole.is_floating_point():
            continue
        kept = sample(_kept(whole))
        want, have, other = (sample(one).to(whole.device)[kept] for one in (whole, got, exchanged_outputs[position]))
        change = rms(other.double() - want.double())
        if not change > 0 or not compare([want], [other], policy).ok or rms(have.double() - want.double()) < _PART * change:
            continue
        what = "elements elsewhere change it by less than the policy's tolerance"
        lines.append(f"output {position}: {what}, so this task cannot tell a right kernel from one that leaves them out")
        found = truth()
        rights = [] if found is None else tensors_of(found)
        right = sample(rights[position]).to(whole.device)[kept] if position < len(rights) else None
        if right is not None and rms(have.double() - right) > FACTOR * rms(want.double() - right):
            words = f"output {position}: {what}, and it is off by as much: a kernel that leaves them out would be as near"
            return Judgement("PrecisionError", words), lines
    return None, lines


def _kept(value: torch.Tensor) -> torch.Tensor:
    """Return which elements keep their values: a half that follows no axis."""
    flat = torch.arange(value.numel(), device=value.device)
    return ((flat * 2654435761 >> 13) & 1).bool().reshape(value.shape)
