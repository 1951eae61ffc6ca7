"""Allows for a golden's own rounding errors where the right value of an output is 0."""

from __future__ import annotations

import torch

from pypto_op.comparison.walk import pieces


def zero_is_as_right(actual: torch.Tensor, answer: torch.Tensor, truth: torch.Tensor) -> bool:
    """Whether an output is zero everywhere, and no further from the truth than the golden itself.

    The guard against outputs of zeros takes the golden's largest value for the scale. Where terms cancel exactly, that
    scale is the golden's rounding error, and a kernel that cancels them exactly too is not wrong, but better.
    """
    if not answer.is_floating_point() or not actual.numel() or not actual.shape == answer.shape == truth.shape:
        return False
    if bool(actual.count_nonzero()):
        return False
    off = largest = 0.0
    for _, (golden, exact) in pieces([answer, truth]):
        wide = exact.to(torch.float64)
        if not bool((torch.isfinite(wide) & torch.isfinite(golden)).all()):
            return False
        off = max(off, float((golden.to(torch.float64) - wide).abs().max()))
        largest = max(largest, float(wide.abs().max()))
    return largest <= off
