"""Computes a kernel's operations once more in torch, from the operands that pypto dumped: does the simulator do what it says?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import torch

from pypto_op.debug.dump_files import Step

_ALLOWED = {torch.float16: 2e-3, torch.bfloat16: 1.6e-2}
_ALLOWED_ELSE = 1e-4

UNARY: Mapping[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "EXP": torch.exp,
    "SQRT": torch.sqrt,
    "RSQRT": torch.rsqrt,
    "LN": torch.log,
    "ABS": torch.abs,
    "NEG": torch.neg,
    "RECIPROCAL": torch.reciprocal,
    "CAST": torch.clone,
}
BINARY: Mapping[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "ADD": torch.add,
    "SUB": torch.sub,
    "MUL": torch.mul,
    "DIV": torch.div,
    "MAXIMUM": torch.maximum,
    "MINIMUM": torch.minimum,
}


def disagreeing(steps: Sequence[Step]) -> Step | None:
    """Return the first operation whose dumped result is not what torch makes of its dumped operands; None: all agree.

    Operations with attributes that the dump does not tell (a scalar, an axis that is not plain from the sizes) are passed over.
    """
    by_name = {step.name: step for step in steps}
    for step in steps:
        if step.moves or any(name not in by_name for name in step.inputs):
            continue
        given = [by_name[name].tensor().to(torch.float64) for name in step.inputs]
        told = step.tensor()
        made = [one for one in _candidates(step, given, told.shape) if one.shape == told.shape]
        if made and not any(_alike(told, one, given) for one in made):
            return step
    return None


def _candidates(step: Step, given: Sequence[torch.Tensor], shape: torch.Size) -> Iterator[torch.Tensor]:
    """Yield what the operation may stand for: operands in either order, products in each transposition."""
    if step.opcode == "CAST" and "INT" in step.dtype:  # the dump does not tell which way it rounds
        yield from (way(given[0]) for way in (torch.trunc, torch.floor, torch.ceil, torch.round))
    elif len(given) == 1 and step.opcode in UNARY:
        yield UNARY[step.opcode](given[0])
    elif len(given) == 2 and step.opcode in BINARY:
        for one, two in (given, list(reversed(given))):
            try:
                yield BINARY[step.opcode](one, two)
            except RuntimeError:
                return
    elif step.opcode.startswith(("ROWSUM", "ROWMAX")) and given:
        axes = [axis for axis, (before, after) in enumerate(zip(given[0].shape, shape, strict=False)) if before != after]
        if len(axes) == 1 and len(shape) == given[0].dim():
            whole = given[0].sum if step.opcode.startswith("ROWSUM") else given[0].amax
            yield whole(axes[0], keepdim=True)
    elif step.opcode == "A_MUL_B" and len(given) == 2 and all(one.dim() == 2 for one in given):
        for left in (given[0], given[0].T):
            for right in (given[1], given[1].T):
                if left.shape[1] == right.shape[0]:
                    yield left @ right


def _alike(told: torch.Tensor, made: torch.Tensor, given: Sequence[torch.Tensor]) -> bool:
    wide = told.to(torch.float64)
    both = wide.isfinite() & made.isfinite()
    scale = max([float(one[one.isfinite()].abs().max()) for one in (*given, made) if bool(one.isfinite().any())], default=1.0)
    allowed = _ALLOWED.get(told.dtype, _ALLOWED_ELSE)
    limits = torch.finfo(told.dtype) if told.is_floating_point() else None
    step = limits.smallest_normal * limits.eps if limits else 0.0  # what lies below the dtype's least number becomes 0
    near = (wide - made).abs() <= allowed * (made.abs() + 0.1 * scale) + step  # sums may cancel
    largest = limits.max if limits else float("inf")
    beyond = (made.abs() > largest) | ~made.isfinite()
    return bool((torch.where(both, near, torch.ones_like(near)) | beyond).all())
