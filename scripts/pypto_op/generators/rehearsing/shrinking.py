"""SPEC.md's tolerance where inputs are small: as much smaller as the outputs are.

Its atol is made for outputs of ordinary size. Beside far smaller ones it takes anything, zeros too, and what is natural there
knows the roundings of the golden alone: a kernel that finds a place in float32, where the golden counts in whole numbers, is as
right as at the usual size, and is off by as large a part of the outputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from pypto_op.documents.knobs import SCALE, ZONE

KNOBS = (SCALE, ZONE)
"""Keys of a case without which its inputs have the usual size."""
_LITTLE = 2.0**-5
"""An output that keeps more than this of its size is not small."""


def shrunken(case: Mapping[str, Any], outputs: Sequence[torch.Tensor], usual: Sequence[torch.Tensor]) -> dict[str, Any] | None:
    """Return the case with an atol as much smaller as its outputs are; None where they are not, or the case has none.

    Args:
        case: with `atol` and `rtol`.
        outputs: what the golden answers on it.
        usual: what it answers on the case without `KNOBS`, in the same order.
    """
    if not {"atol", "rtol"} <= set(case) or len(outputs) != len(usual):
        return None
    pairs = [(own, other) for own, other in zip(outputs, usual, strict=True) if own.is_floating_point() and own.numel()]
    share = max((_size(own) / _size(other) if _size(other) else 1.0 for own, other in pairs), default=1.0)
    return {**case, "atol": float(f"{case['atol'] * share:.3g}")} if 0.0 < share < _LITTLE else None


def _size(output: torch.Tensor) -> float:
    """Return the root of the mean square of an output's finite numbers."""
    finite = output.double()[output.isfinite()]
    return float(finite.square().mean().sqrt()) if finite.numel() else 0.0
