"""A variance of one walk that merges the means of tiles is as honest as one of two walks; plain squares are not."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from tests.twins.honest_forms import Judge

from pypto_op.documents.policy import get_policy
from pypto_op.twins.reordering import Reordered

TWIN = get_policy("twin@2")
Moments = tuple[torch.Tensor, torch.Tensor]


def of_torch(x: torch.Tensor, counts: torch.Tensor) -> Moments:
    return x.mean(-1), x.var(-1, correction=0)


def by_hand(x: torch.Tensor, counts: torch.Tensor) -> Moments:
    mean = x.sum(-1) / x.shape[-1]
    return mean, ((x - mean[:, None]) ** 2).mean(-1)


def of_what_counts(x: torch.Tensor, counts: torch.Tensor) -> Moments:
    number = counts.to(x.dtype).sum(-1, keepdim=True).clamp(min=1)
    mean = torch.where(counts, x, 0.0).sum(-1, keepdim=True) / number
    away = torch.where(counts, x - mean, 0.0)
    return mean[:, 0], ((away * away).sum(-1, keepdim=True) / number)[:, 0]


def merged(x: torch.Tensor, counts: torch.Tensor, tile: int = 64, most: int | None = None) -> Moments:
    """One walk: each tile's mean and squares join those before it (Chan, Golub, LeVeque)."""
    seen, mean, squares = (torch.zeros(len(x)) for _ in range(3))
    for start in range(0, x.shape[1], tile):
        kept = counts[:, start : start + tile].to(torch.float32)
        here = kept.sum(-1)
        middle = (x[:, start : start + tile] * kept).sum(-1) / here.clamp(min=1)
        beside = (x[:, start : start + tile] - middle[:, None]) * kept
        apart = middle - mean
        moved = apart * (here / (seen + here).clamp(min=1))
        squares = squares + (beside * beside).sum(-1) + apart * moved * seen
        mean, seen = mean + moved, seen + here
    return mean, squares / seen.clamp(min=1)


def values(seed: int, shift: float, scale: float, columns: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    x = shift + scale * torch.randn(64, columns, generator=generator)
    return x, torch.rand(64, columns, generator=generator) > 0.3


SPREADS = [(100.0, 0.1), (1000.0, 1.0), (10.0, 1.0), (0.0, 1.0)]


@pytest.mark.parametrize("golden", [of_torch, by_hand, of_what_counts])
@pytest.mark.parametrize(("shift", "scale"), SPREADS)
@pytest.mark.parametrize("tile", [1, 16, 64])
def test_a_merged_variance_is_right(golden: Callable[..., Moments], shift: float, scale: float, tile: int) -> None:
    for seed, columns in enumerate((7, 64, 99, 333)):
        x, counts = values(seed, shift, scale, columns)
        counts = counts if golden is of_what_counts else torch.ones_like(counts)
        verdict = Judge(golden, (x, counts), TWIN)(merged(x, counts, tile))
        assert verdict.status == "PASS", (columns, verdict.reasons)


def plain_squares(x: torch.Tensor, counts: torch.Tensor) -> Moments:
    mean = x.mean(-1)
    return mean, (x * x).mean(-1) - mean * mean


def never_merged(x: torch.Tensor, counts: torch.Tensor) -> Moments:
    tiles = x.reshape(len(x), -1, 64)
    return x.mean(-1), tiles.var(-1, correction=0).mean(-1)


def in_16_bits(x: torch.Tensor, counts: torch.Tensor) -> Moments:
    mean = x.mean(-1)
    return mean, (x.half().float() - mean[:, None]).square().mean(-1)


def of_another_number(x: torch.Tensor, counts: torch.Tensor) -> Moments:
    return x.mean(-1), x.var(-1, correction=1)


@pytest.mark.parametrize("wrong", [plain_squares, never_merged, in_16_bits, of_another_number])
@pytest.mark.parametrize(("shift", "scale"), SPREADS[:2])
def test_what_is_wrong_stays_wrong(wrong: Callable[..., Moments], shift: float, scale: float) -> None:
    x, counts = values(11, shift, scale, 512)
    assert not Judge(by_hand, (x, torch.ones_like(counts)), TWIN).takes(wrong(x, counts))


def test_counts_are_no_means() -> None:
    """A place less a count of whole tiles stays exact in every twin; a golden floors it."""

    def half(x: torch.Tensor) -> torch.Tensor:
        return torch.arange(8.0) - (x > 0).to(torch.float32).sum(-1, keepdim=True) / 2

    x = torch.ones(4, 16)
    for twin in ("reversed", "tiled", "pairwise", "sequential"):
        with Reordered(twin):
            assert torch.equal(half(x), torch.arange(8.0).expand(4, 8) - 8)


def test_a_distance_alone_is_what_it_was() -> None:
    """Only a sum of squares may be merged; what is handed out beside the mean of its tile would be wrong."""
    x, _ = values(3, 1000.0, 1.0, 64)
    mean = x.sum(-1, keepdim=True) / 64
    for twin in ("reversed", "tiled", "pairwise", "sequential"):
        with Reordered(twin):
            known = x.sum(-1, keepdim=True) / 64
            away = x - known
        assert torch.equal(away, x - known)
    assert float((known - mean).abs().max()) < 1e-3


def test_a_distance_that_was_written_into_is_forgotten() -> None:
    def doubled(x: torch.Tensor) -> torch.Tensor:
        away = x - x.mean(-1, keepdim=True)
        away.mul_(2.0)
        return (away * away).sum(-1)

    x, _ = values(4, 100.0, 0.1, 64)
    judge = Judge(doubled, (x,), TWIN)
    assert judge.takes(doubled)
    assert not judge.takes(lambda x: doubled(x) / 4)
