"""Values for further calls: those of a case, rolled along the first axis and made a little smaller.

What an operator may rely on stays: edges of bins stay sorted, a symmetric matrix stays symmetric, probabilities add up to 1,
and labels and masks hold the numbers that they are compared with.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import torch

from pypto_op.triton.run.inputs.edges import is_sorted, is_symmetric
from pypto_op.triton.run.inputs.packing import once, tensors_of
from pypto_op.triton.run.inputs.skewed import is_normalised

FACTORS = (1.0, 0.875, 0.75)
_SCALED = frozenset({torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128})
_LOOKED_AT = 1 << 16
_UNCOMPARED = frozenset({torch.uint16, torch.uint32, torch.uint64})
"""PyTorch does not compare these; nor do devices compare floats of 8 bits."""
_SHORTEST = 5
"""Fewer elements are in order by chance too often."""
_LABELS = 8
"""Whole numbers of no more values than this are labels or a mask."""

Way: TypeAlias = tuple[bool, bool]
"""Whether a tensor is rolled, and whether it is made smaller."""


def ways_of(base: Any) -> list[Way]:
    """Return how each tensor of a structure changes from call to call.

    Integers and bools stay as they are (they may be indices or lengths) unless there is no floating tensor at all.
    """
    sources = [once(tensor) for tensor in tensors_of(base)]
    floats = any(source.is_floating_point() or source.is_complex() for source in sources)
    return [_way(source, floats) for source in sources]


def refresh(working: Any, base: Any, shift: int, ways: Sequence[Way] | None = None) -> None:
    """Write the values of `base`, rolled and made a little smaller, into the memory of `working`.

    Rolling keeps each row as it is; the factor changes a sum over everything too, or an old one would still be right.

    Args:
        working: as `base`, with memory of its own.
        base: stays as it is.
        shift: by how many places it is rolled, and which factor it gets; 0: nothing changes.
        ways: of `ways_of(base)`, for who refreshes often.
    """
    pairs = [(once(target), once(source)) for target, source in zip(tensors_of(working), tensors_of(base), strict=True)]
    for (target, source), (rolls, scales) in zip(pairs, ways_of(base) if ways is None else ways, strict=True):
        target.copy_(_rolled(source, shift) if rolls and shift else source)
        if scales and shift:
            target.mul_(FACTORS[shift % len(FACTORS)])


def _way(source: torch.Tensor, floats: bool) -> Way:
    real = source.is_floating_point()
    if not source.dim() or not source.numel() or not (real or source.is_complex() or not floats):
        return False, False
    if source.dtype in _UNCOMPARED or source.is_complex() or (real and source.dtype not in _SCALED):
        return True, source.is_complex()
    scales = real and not (_is_of_labels(source) or is_normalised(source))
    return not (is_sorted(source, _SHORTEST) or is_symmetric(source)), scales


def _is_of_labels(source: torch.Tensor) -> bool:
    """Whether a float tensor holds few whole numbers."""
    some = source.reshape(-1)[:: max(1, source.numel() // _LOOKED_AT)]
    return len(set(some.tolist())) <= min(_LABELS, source.numel() // 2) and bool((source == source.round()).all())


def _rolled(source: torch.Tensor, shift: int) -> torch.Tensor:
    axis = next((axis for axis, size in enumerate(source.shape) if size > 1), 0)
    by = shift % source.shape[axis]
    if by == 0:
        return source
    return torch.cat([source.narrow(axis, source.shape[axis] - by, by), source.narrow(axis, 0, source.shape[axis] - by)], axis)
