"""What a comparison of two tensors never met: zeros on both sides, elements that are close, one that stands twice in a row."""

from __future__ import annotations

import torch


def are_never_zero(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether a comparison never has zeros on both sides; other elements that are equal show rounding, too."""
    return not bool(((one == 0) & (other == 0)).any())


def is_never_twice(one: torch.Tensor, other: torch.Tensor) -> bool | None:
    """Whether what stands for a row is never equal to several of its elements; None where nothing stands for a row."""
    whole, part = (one, other) if one.numel() > other.numel() else (other, one)
    equal = whole == part
    if whole.shape != equal.shape or not equal.numel():
        return None
    axes = [axis for axis in range(-part.dim(), 0) if part.shape[axis] == 1 < equal.shape[axis]]
    axes += range(-equal.dim(), -part.dim())
    return not bool((equal.sum(axes) > 1).any()) if axes else None


def is_never_close(name: str, apart: torch.Tensor, out: torch.Tensor) -> bool:
    """Whether a comparison of a difference with a bound never found one below it that is not zero."""
    near = out if name in ("lt", "le") else ~out
    return not bool((near & (apart != 0)).any())


def are_greatest_alike(given: torch.Tensor, greatest: torch.Tensor) -> bool:
    """Whether neighbours that are equal, and not zero, are the greatest of a pool's window: zeros hide behind thresholds."""
    after = given[..., 1:]
    return bool(torch.isin(after[(given.diff(dim=-1) == 0) & (after != 0)], greatest).any())
