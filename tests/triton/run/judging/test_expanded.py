"""Squared distances by an expanded square are one more order of additions, and variances by one are none."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from pypto_op.triton.run.judging.expanded import Expanded


def _of(function: Callable[[torch.Tensor, torch.Tensor], torch.Tensor], *, away: float = 3.0) -> tuple[torch.Tensor, ...]:
    """Return an answer, the same with squares expanded, and in float64."""
    generator = torch.Generator().manual_seed(1)
    a, b = torch.randn(2, 64, 32, generator=generator) * 0.25 + away
    with Expanded():
        found = function(a, b)
    return function(a, b), found, function(a.double(), b.double())


DISTANCES: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "powers": lambda a, b: ((a - b) ** 2).sum(-1),
    "means": lambda a, b: (a - b).square().mean(-1, keepdim=True),
    "norms": lambda a, b: torch.linalg.vector_norm(a - b, dim=-1),
    "pairs": lambda a, b: (a[:, None] - b[None]).square().sum(-1),
}


@pytest.mark.parametrize("name", sorted(DISTANCES))
def test_a_distance_is_expanded_and_errs_by_the_size_of_its_sides(name: str) -> None:
    plain, found, right = _of(DISTANCES[name])
    assert (found - right).abs().max() > 5 * (plain - right).abs().max()
    assert torch.allclose(found.double(), right, rtol=1e-3)


@pytest.mark.parametrize(
    "function",
    [
        lambda a, b: ((a - a.mean(-1, keepdim=True)) ** 2).mean(-1),
        lambda a, b: ((a - b) ** 3).sum(-1),
        lambda a, b: (a - a.nextafter(b)).square().sum(-1),
    ],
    ids=["variance", "cubes", "too_near"],
)
def test_nothing_else_is(function: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> None:
    plain, found, _ = _of(function)
    assert torch.equal(plain, found)
