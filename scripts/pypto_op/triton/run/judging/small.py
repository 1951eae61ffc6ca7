"""Terms of a reference that change its answer by less than the tolerance: `x + 1e-5 * y`, a branch with a scale of 1e-6.

So does a factor that is nearly one, of a decay by `1 - 1e-5`, or n / (n - 1) of a variance. A kernel that leaves such a term out
is within the policy. But its error is that very term, and an honest kernel's error, however large, has nothing to do with it. So
the reference runs once more without each of its small terms, and what the kernel errs by is compared with what that changes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import torch

from pypto_op.dispatch_mode import DispatchMode, place_in
from pypto_op.triton.run.inputs.packing import tensors_of
from pypto_op.triton.run.judging.judgement import Judgement
from pypto_op.triton.run.judging.trivial import rms, sample

Place = tuple[int, int]
_SUMS = {"add": 1, "add_": 1, "sub": -1, "sub_": -1}
_SCALES = frozenset(("mul", "mul_", "div", "div_"))
_NORMS: dict[str, Callable[[Any], tuple[int, Sequence[int], float]]] = {
    "native_layer_norm": lambda args: (2, args[1], math.prod(args[1])),
    "native_group_norm": lambda args: (1, args[4:5], args[4] * args[5] / args[6]),
}
"""Their weight's position and shape, and of how many elements they take a variance."""
_SPREADS = frozenset(("var", "std", *_NORMS))
_SMALL = 2.0**-6
"""Of the greatest element of one operand: the other one is small where none of its elements is greater.

So far from one is a factor that counts as nearly one.
"""
_MOST, _APART = 4, 4
_PART, _SIGMAS = 0.5, 6.0
"""A term counts as left out where that part of it is missing, and by chance that happens this many deviations away."""
_ABOVE = 4.0
"""What a term changes must be so many times what the reference errs by."""


class Small(DispatchMode):
    """Notes sums of which one operand is small, and factors that are nearly one, while it is active.

    Args:
        path: of the task.
        drops: the places at which such operands are left out, too.

    Attributes:
        places: of the task at which there are such terms: the line, and the instruction, as a line may hold several.
    """

    def __init__(self, path: Path, drops: Collection[Place] = ()) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.places: set[Place] = set()
        self._path, self._drops = str(path), {tuple(place) for place in drops}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call the operator, with or without what is small."""
        name = str(func.overloadpacket.__name__)
        kept = _kept(name, args, kwargs or {}) if name in _SUMS else _scaled(args) if name in _SCALES else None
        kept = _spread(func, name, args, kwargs or {}) if name in _SPREADS else kept
        place = (0, 0) if kept is None else place_in(self._path)
        if kept is not None:
            self.places.add(place)
        if kept is None or place not in self._drops:
            return func(*args, **(kwargs or {}))
        if name in _SPREADS:
            return kept
        return args[0] if name.endswith("_") else kept.clone()


def apart(places: Sequence[Place]) -> list[list[Place]]:
    """Return which places are left out together: each alone, but the last of many."""
    return [*([place] for place in places[:_APART]), *([[*places[_APART:]]] if len(places) > _APART else [])]


def judged(places: Sequence[Place], outputs: Any, answer: Any, without: list[torch.Tensor], truth: Any) -> Judgement:
    """Return whether an answer, which the policy found right, lacks the terms of these places.

    Args:
        places: of `Small`.
        outputs, answer: of reference and implementation.
        without: `sample` of what the reference returns without these terms, output by output.
        truth: the reference's outputs in float64, or None.
    """
    rights = tensors_of(truth) if truth is not None else []
    for position, (want, got, other) in enumerate(zip(tensors_of(outputs), tensors_of(answer), without, strict=False)):
        if not want.is_floating_point() or other.shape != sample(want).shape:
            continue
        expected, found, less = (one.to(want.device).double() for one in (sample(want), sample(got), other))
        right = sample(rights[position]).to(want.device).double() if position < len(rights) else expected
        finite = torch.isfinite(expected) & torch.isfinite(found) & torch.isfinite(less) & torch.isfinite(right)
        if not bool(finite.any()):
            continue
        term, error = (less - expected)[finite], (found - right)[finite]
        if rms(term) <= _ABOVE * rms((expected - right)[finite]):
            continue
        missing = float((error * term).sum() / term.square().sum())
        if missing > max(_PART, _SIGMAS * rms(error) / (rms(term) * len(term) ** 0.5)):
            named = ", ".join(str(line) for line, _ in places[:_MOST])
            words = (
                f"output {position} is within the policy, but it errs by just what the sum or the factor in line {named} of the "
                "task changes: a term that changes less than the tolerance is left out or wrong"
            )
            return Judgement("PrecisionError", words)
    return Judgement()


def _scaled(args: Any) -> torch.Tensor | None:
    """Return what a product or quotient is without its number that is nearly one; None where there is none."""
    if len(args) < 2 or not isinstance(args[0], torch.Tensor) or not isinstance(args[1], float):
        return None
    near = 0.0 < abs(args[1] - 1.0) <= _SMALL and args[0].is_floating_point() and args[0].numel() > 1
    return args[0] if near else None


def _spread(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    """Return what divides by n - 1 where the reference divides by n, or the other way round; None of few elements."""
    if name in _NORMS:
        position, shape, count = _NORMS[name](args)
        if count * _SMALL < 1:
            return None
        weight = args[0].new_ones(shape) if args[position] is None else args[position]
        return func(*args[:position], weight * (1 - 1 / count) ** 0.5, *args[position + 1 :], **kwargs)
    correction = 1 if kwargs.get("correction") is None else kwargs["correction"]
    if correction not in (0, 1):
        return None
    found = func(*args, **{**kwargs, "correction": 1 - correction})
    return found if args[0].numel() * _SMALL >= found.numel() > 0 else None


def _kept(name: str, args: Any, kwargs: Any) -> torch.Tensor | None:
    """Return what a sum is without its small operand; None where none is small."""
    if len(args) < 2 or not all(isinstance(one, torch.Tensor) and one.is_floating_point() for one in args[:2]):
        return None
    left, right = args[:2]
    shape = torch.broadcast_shapes(left.shape, right.shape)  # type: ignore[no-untyped-call]
    if shape.numel() < 2 or left.dtype is not right.dtype:
        return None
    factor = _SUMS[name] * kwargs.get("alpha", 1)
    first, second = float(left.abs().max()), abs(factor) * float(right.abs().max())
    if second <= _SMALL * first and left.shape == shape and second:
        return left  # type: ignore[no-any-return]
    if first <= _SMALL * second and right.shape == shape and first and not name.endswith("_"):
        return right * factor  # type: ignore[no-any-return]
    return None
