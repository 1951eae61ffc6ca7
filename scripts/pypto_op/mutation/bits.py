"""Compares two runs bit for bit; any NaN equals any other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pypto_op.tensor_bytes import bytes_in
from pypto_op.vocabulary import Outcome

if TYPE_CHECKING:
    import torch

    from pypto_op.backends.base import RunResult


def same(run: RunResult, outputs: Sequence[torch.Tensor]) -> bool:
    """Whether a run gave exactly these values, in these shapes and dtypes."""
    if run.outcome is not Outcome.OK or len(run.outputs) != len(outputs):
        return False
    return all(_equal(mine, other) for mine, other in zip(run.outputs, outputs, strict=True))


def _equal(one: torch.Tensor, two: torch.Tensor) -> bool:
    import torch

    if one.dtype != two.dtype or one.shape != two.shape:
        return False
    if one.is_floating_point():
        nan = torch.isnan(one)
        if not torch.equal(nan, torch.isnan(two)):
            return False
        one, two = one.masked_fill(nan, 0.0), two.masked_fill(nan, 0.0)
    bits = (bytes_in(tensor) for tensor in (one, two))
    return torch.equal(*bits)
