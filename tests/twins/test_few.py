"""An average that few elements carry is luck: the natural error of a right kernel may exceed it as it may the greatest."""

from __future__ import annotations

import torch
from tests.twins.honest_forms import Judge

from pypto_op.documents.policy import get_policy

POLICY = get_policy("twin@2")


def column_sums(x: torch.Tensor) -> torch.Tensor:
    """The gradient of a bias: four sums over batches and places, one of which nearly cancels."""
    return x.sum(dim=(0, 2))


def from_the_end(x: torch.Tensor) -> torch.Tensor:
    return x.permute(1, 2, 0).reshape(x.shape[1], -1).flip(-1).contiguous().sum(-1)


def values(seed: int) -> tuple[torch.Tensor]:
    return (1e-3 * torch.randn(3, 4, 195, generator=torch.Generator().manual_seed(seed)),)


def test_a_sum_in_another_order_is_right_where_one_of_four_nearly_cancels() -> None:
    for seed in (306, *range(20)):
        verdict = Judge(column_sums, values(seed), POLICY)(from_the_end)
        assert verdict.status == "PASS", (seed, verdict.summary)


def test_a_sum_of_16_bits_is_wrong_all_the_same() -> None:
    def halved(x: torch.Tensor) -> torch.Tensor:
        return x.sum(dim=2).half().float().sum(dim=0)

    assert not any(Judge(column_sums, values(seed), POLICY).takes(halved) for seed in range(20))


def test_an_average_of_many_elements_keeps_its_bound() -> None:
    """Of 4096 sums the mean error is no luck: three roundings to the wrong side in each are not natural."""
    x = torch.randn(4096, 8, generator=torch.Generator().manual_seed(3))

    def rows(x: torch.Tensor) -> torch.Tensor:
        return x.abs().sum(dim=-1)

    found = rows(x)
    moved = found * (1.0 + 5.0 * torch.finfo(torch.float32).eps)
    judge = Judge(rows, (x,), POLICY)
    assert judge.takes(rows) and not judge.takes([moved])
