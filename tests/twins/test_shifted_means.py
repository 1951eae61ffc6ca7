"""A mean that is taken from the distances to one of the values is as honest as a plain one, and makes nothing else natural."""

from __future__ import annotations

import pytest
import torch
from tests.twins.honest_forms import Judge

from pypto_op.documents.policy import get_policy
from pypto_op.twins import shifts
from pypto_op.twins.reordering import TWINS, Reordered

TWIN = get_policy("twin@2")


def plain(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return x.mean(0)


def by_number(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return x.sum(0) / x.shape[0]


def by_weight(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    total = weight.sum()
    return (weight[:, None] * x).sum(0) / total.clamp(min=1.0)


def weights_last(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    total = (x * weight[:, None]).sum(dim=0, keepdim=True)
    return (total / weight.sum())[0]


GOLDENS = [plain, by_number, by_weight, weights_last]


def shifted(x: torch.Tensor, weight: torch.Tensor, start: int = 0) -> torch.Tensor:
    """Take one value off, add up, and add it back."""
    away = weight[:, None] * (x - x[start])
    return x[start] + away.sum(0) / weight.sum()


def values(seed: int, rows: int, even: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Return values on both sides of 0, so that means are small beside them, and weights that are whole numbers."""
    generator = torch.Generator().manual_seed(seed)
    x = 1e-4 * torch.randn(rows, 256, generator=generator)
    return x, torch.ones(rows) if even else torch.randint(1, 100_000, (rows,), generator=generator).float()


@pytest.mark.parametrize("golden", GOLDENS)
@pytest.mark.parametrize("rows", [19, 48, 161, 1024])
def test_a_shifted_mean_is_right(golden, rows: int) -> None:
    for seed in range(6):
        x, weight = values(seed, rows, golden in (plain, by_number))
        for start in (0, -1):
            verdict = Judge(golden, (x, weight), TWIN)([shifted(x, weight, start)])
            assert verdict.status == "PASS", (seed, start, verdict.reasons)


@pytest.mark.parametrize("golden", GOLDENS)
def test_what_is_wrong_stays_wrong(golden) -> None:
    x, weight = values(3, 48, golden in (plain, by_number))
    judge = Judge(golden, (x, weight), TWIN)
    right = golden(x, weight)
    assert judge.takes([right])
    for wrong in (
        right * (1.0 + 2.0**-18),
        shifted(x, weight) - x[0] * 2.0**-18,
        golden(x.to(torch.float16).float(), weight),
        golden(x[:-1], weight[:-1]),
    ):
        assert not judge.takes([wrong])


def test_only_a_mean_is_shifted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sum over another number than that of its weights, and one of squares, are what they were."""
    x, weight = values(4, 48, even=False)
    others = (
        lambda: (weight[:, None] * x).sum(0) / 7.0,
        lambda: (weight[:, None] * x).sum(0) / (weight.sum() - 1.0e5),
        lambda: (x * x).mean(0),
        lambda: x.square().mean(0),
        lambda: (x.square() * weight[:, None]).sum(0) / weight.sum(),
    )
    changed = []
    for golden in (*others, lambda: x.mean(0)):
        with Reordered("reversed"):
            found = golden()
        with monkeypatch.context() as patch, Reordered("reversed"):
            patch.setattr(shifts.Shifts, "mean", lambda self, found, *_: found)
            changed.append(not torch.equal(found, golden()))
    assert changed == [False] * len(others) + [True]


def test_a_row_that_counts_nowhere_may_hold_anything() -> None:
    x, weight = values(5, 48, even=False)
    x[0], weight[0] = 3.0e38, 0.0
    assert bool(torch.isfinite(by_weight(x, weight)).all())
    for twin in TWINS:
        with Reordered(twin):
            found = by_weight(x, weight)
        torch.testing.assert_close(found, by_weight(x, weight), rtol=1e-4, atol=1e-9)


def test_a_sum_that_was_written_into_is_forgotten() -> None:
    def moved(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        total = x.sum(0)
        total.add_(1.0e-3)
        return total / x.shape[0]

    x, weight = values(7, 48, even=True)
    for twin in TWINS:
        with Reordered(twin):
            found = moved(x, weight)
        assert float((found - moved(x, weight)).abs().max()) < 4e-11


def test_no_weights_at_all() -> None:
    x, weight = values(6, 8, even=False)
    for twin in TWINS:
        with Reordered(twin):
            assert torch.equal(by_weight(x, weight * 0.0), torch.zeros(256))
