"""Sums that torch hides in convolutions, gradients and losses run in other orders, and a plain loop over terms is honest."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name
from tests.twins.judging import Judge, judge_of

from pypto_op.twins.reordering import Reordered
from pypto_op.vocabulary import Status

CONVOLUTIONS = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}

GOLDEN = """
import torch


def weight_gradient(above, x):
    x = x.to(torch.promote_types(x.dtype, torch.float32))
    with torch.enable_grad():
        weight = torch.zeros(x.shape[1], 1, 3, dtype=x.dtype, requires_grad=True)
        y = torch.nn.functional.conv1d(x, weight, padding=1, groups=x.shape[1])
        return torch.autograd.grad(y, weight, above.to(x.dtype))[0].squeeze(1)


def columns(x):
    return torch.matmul(torch.ones(1, x.shape[0], dtype=x.dtype), x).squeeze(0)
"""


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    with judge_of(tmp_path_factory.mktemp("hidden"), GOLDEN, "columns") as status:
        yield status


@pytest.mark.parametrize("axes", CONVOLUTIONS)
@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize(("stride", "padding", "dilation"), [(1, 1, 1), (2, 0, 1), (2, 3, 2)])
def test_a_convolution_and_its_gradients_are_themselves_in_another_order(
    axes: int, groups: int, stride: int, padding: int, dilation: int
) -> None:
    generator = torch.Generator().manual_seed(7)
    x, weight = torch.randn(3, 4, *[9] * axes, generator=generator), torch.randn(8, 4 // groups, *[3] * axes, generator=generator)
    given = [x.requires_grad_(), weight.requires_grad_(), torch.randn(8, generator=generator).requires_grad_()]
    told = (stride, padding, dilation, groups)
    y = CONVOLUTIONS[axes](*given, *told)
    above = torch.randn(y.shape, generator=generator)
    plain = torch.autograd.grad(y, given, above)
    with Reordered("sequential"):
        other = CONVOLUTIONS[axes](*given, *told)
        gradients = torch.autograd.grad(other, given, above)
    assert not torch.equal(y, other)
    torch.testing.assert_close(other, y, rtol=1e-4, atol=1e-4)
    for mine, torchs in zip(gradients, plain, strict=True):
        torch.testing.assert_close(mine, torchs, rtol=1e-3, atol=1e-3)


LOSSES: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "huber": lambda x, y: F.huber_loss(x, y),
    "smooth": lambda x, y: F.smooth_l1_loss(x, y),
    "binary": lambda x, y: F.binary_cross_entropy(x.sigmoid(), y.sigmoid()),
    "likelihood": lambda x, y: F.nll_loss(x, y.argmax(-1), ignore_index=3),
}


@pytest.mark.parametrize("name", LOSSES)
def test_the_mean_of_a_loss_is_a_sum(name: str) -> None:
    x, y = torch.randn(2, 1031, 64, generator=torch.Generator().manual_seed(3)).unbind()
    plain = LOSSES[name](x, y)
    with torch.no_grad(), Reordered("sequential"):
        other = LOSSES[name](x, y)
    assert not torch.equal(plain, other)
    torch.testing.assert_close(other, plain, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_terms_of_a_matrix_product_may_be_added_one_by_one(judge: Judge) -> None:
    for seed in range(40):
        x = torch.randn(192, 96, generator=torch.Generator().manual_seed(seed))
        total = torch.zeros(96)
        for row in x:
            total = total + row
        assert judge(total, x) is Status.PASS, seed
    halves = torch.zeros(96)
    for part in x.split(16):
        halves = (halves + part.sum(0)).to(torch.float16).float()
    assert judge(halves, x) is Status.FAIL


def test_a_gradient_of_25600_terms_may_be_added_one_by_one(judge: Judge) -> None:
    for seed in range(4):
        above, x = torch.randn(2, 40, 8, 640, generator=torch.Generator().manual_seed(seed)).unbind()
        padded = F.pad(x, (1, 1))
        terms = torch.stack([(above * padded[..., tap : tap + 640]).transpose(0, 1).flatten(1) for tap in range(3)], 1)
        total = torch.from_numpy(terms.numpy().cumsum(-1))[..., -1].clone()
        assert judge(total, above, x, function="weight_gradient") is Status.PASS, seed
        parts = terms.unflatten(-1, (-1, 640)).sum(-1)
        half = torch.zeros(8, 3)
        for part in parts.unbind(-1):
            half = (half + part).to(torch.bfloat16).float()
        assert judge(half, above, x, function="weight_gradient") is Status.FAIL
