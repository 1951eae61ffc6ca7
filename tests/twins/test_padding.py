"""A NaN that only padding is multiplied by may stay or go; one that a pixel is multiplied by must stay."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name
from tests.twins.judging import Judge, judge_of

from pypto_op.vocabulary import Status

GOLDEN = """
import torch
import torch.nn.functional as F


def padded(above, x):
    room = F.pad(x, (1, 1))
    return torch.stack([(above * room[:, tap : tap + x.shape[1]]).sum(1) for tap in range(3)], 1)


def written(above, x):
    room = torch.zeros(x.shape[0], x.shape[1] + 2, dtype=x.dtype)
    room[:, 1:-1] = x
    return torch.einsum("cn,ctn->ct", above, room.unfold(1, x.shape[1], 1))


def joined(above, x):
    edge = torch.zeros(x.shape[0], 1, dtype=x.dtype)
    room = torch.cat((edge, x, edge), 1)
    rows = room.unfold(1, x.shape[1], 1).transpose(1, 2)
    return torch.matmul(above.unsqueeze(1), rows).squeeze(1)


def torchs_own(above, x):
    with torch.enable_grad():
        weight = torch.zeros(x.shape[0], 1, 3, dtype=x.dtype, requires_grad=True)
        y = F.conv1d(x.unsqueeze(0), weight, padding=1, groups=x.shape[0])
        return torch.autograd.grad(y, weight, above.unsqueeze(0))[0].squeeze(1)


def from_a_state(above, x):
    state = torch.zeros_like(x)
    return torch.stack([(above * state + x).sum(1)] * 3, 1)
"""
FORMS = ("padded", "written", "joined", "torchs_own")


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    with judge_of(tmp_path_factory.mktemp("padding"), GOLDEN, "padded") as status:
        yield status


def inputs(at: int) -> tuple[torch.Tensor, torch.Tensor]:
    above, x = torch.randn(2, 4, 19, generator=torch.Generator().manual_seed(3)).unbind()
    above[1, at] = torch.nan
    return above, x


def over_padding(above: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    room = F.pad(x, (1, 1))
    return torch.stack([(above * room[:, tap : tap + x.shape[1]]).sum(1) for tap in range(3)], 1)


def over_pixels(above: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return torch.stack([(above[:, 1:] * x[:, :-1]).sum(1), (above * x).sum(1), (above[:, :-1] * x[:, 1:]).sum(1)], 1)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("at", [0, 7, 18])
def test_a_product_with_padding_may_be_left_out(judge: Judge, form: str, at: int) -> None:
    given = inputs(at)
    for kernel in (over_padding, over_pixels):
        assert judge(kernel(*given), *given, function=form) is Status.PASS, kernel.__name__


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("at", [0, 7, 18])
def test_a_nan_beside_a_pixel_stays(judge: Judge, form: str, at: int) -> None:
    above, x = inputs(at)
    lost = over_pixels(torch.where(above.isnan(), 0.0, above), x)
    assert judge(lost, above, x, function=form) is Status.FAIL
    spread = over_pixels(above, x)
    spread[0, 0] = torch.nan
    assert judge(spread, above, x, function=form) is Status.FAIL


def test_a_state_that_begins_at_0_is_no_padding(judge: Judge) -> None:
    above, x = inputs(7)
    right = torch.stack([(above * 0.0 + x).sum(1)] * 3, 1)
    assert judge(right, above, x, function="from_a_state") is Status.PASS
    assert judge(torch.stack([x.sum(1)] * 3, 1), above, x, function="from_a_state") is Status.FAIL
