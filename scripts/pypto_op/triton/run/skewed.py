"""Other values for inputs that lie around zero: a mean, a sum or a padding that hides at zero shows elsewhere.

`torch.randn` has mean 0. So a variance that counts its padding, a constant in the place of a log-sum-exp, or a norm without its
mean is nearly right. In the later passes such inputs are therefore moved upwards. They stay within their range, keep their order,
and what is zero stays zero (a triangle, a mask). So an argument of `asin` or a symmetric matrix is one still.
"""

from __future__ import annotations

from typing import Any

import torch

from pypto_op.triton.run.packing import map_tensors, memory_of, same_layout, tensors_of

_LEAST = 16
"""So many different values has what a continuous distribution drew; signs have fewer, and integers are whole."""
_SHARE = 0.25
"""Of the elements that are not zero, more than this are below, and above."""
_POWER = 0.5
"""The place of a value in its range, 0 to 1, is raised to this: a mean in the middle goes to about 0.7."""
TOLD = "the inputs of this pass that lie around zero were moved upwards within their range, which the task's own do not show"


def skewed(inputs: Any) -> Any | None:
    """Return inputs of the same layout, those around zero moved; None where there are none."""
    if not any(map(_is_around_zero, tensors_of(inputs))):
        return None
    return map_tensors(inputs, lambda tensor: _moved(tensor) if _is_around_zero(tensor) else same_layout(tensor))


def are_finite(outputs: Any) -> bool:
    """Whether everything that a reference returned is finite: then other inputs suit it."""
    return all(bool(torch.isfinite(tensor).all()) for tensor in tensors_of(outputs))


def _is_around_zero(tensor: torch.Tensor) -> bool:
    if not tensor.is_floating_point() or tensor.element_size() < 2 or tensor.numel() < _LEAST:
        return False
    below, above = int((tensor < 0).sum()), int((tensor > 0).sum())
    if min(below, above) <= _SHARE * (below + above):
        return False
    if not bool(torch.isfinite(tensor).all()) or bool((tensor == tensor.round()).all()):
        return False
    return len(set(tensor.reshape(-1)[: _LEAST**2].tolist())) >= _LEAST


def _moved(tensor: torch.Tensor) -> torch.Tensor:
    moved = same_layout(tensor)
    memory = memory_of(moved)
    wide = memory.to(torch.float64 if tensor.dtype is torch.float64 else torch.float32)
    low, high = (float(end) for end in torch.aminmax(tensor))
    places = ((wide - low) / (high - low)).clamp(0.0, 1.0) ** _POWER
    memory.copy_(torch.where(wide == 0, wide, low + (high - low) * places))
    return moved
