"""pypto has no tanh, so a right kernel takes it by an exponential: beside 0 that errs by a rounding of 1, which is natural."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from tests.twins.honest_forms import Judge

from pypto_op.documents.policy import get_policy
from pypto_op.twins.orders import ORDERS
from pypto_op.twins.reordering import Reordered


def values(seed: int, scale: float) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    old, new, gate = scale * torch.randn(3, 32, 48, generator=generator)
    return old, new, gate


def cell(old: torch.Tensor, new: torch.Tensor, gate: torch.Tensor) -> torch.Tensor:
    """What a recurrent cell keeps."""
    share = torch.sigmoid(gate)
    return (1.0 - share) * torch.tanh(new) + share * old


def slope(grad: torch.Tensor, x: torch.Tensor, tanh: Callable[[torch.Tensor], torch.Tensor] = torch.tanh) -> torch.Tensor:
    """What a GELU in its tanh form hands back: where x is far below 0, all that is left of 1 + tanh."""
    factor = math.sqrt(2.0 / math.pi)
    h = tanh(factor * (x + 0.044715 * x * x * x))
    return grad * (0.5 * (1.0 + h) + 0.5 * x * (1.0 - h * h) * factor * (1.0 + 3 * 0.044715 * x * x))


def slope_by_sigmoid(grad: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    factor = math.sqrt(2.0 / math.pi)
    rest = 1.0 / (torch.exp(2.0 * factor * (x + 0.044715 * x * x * x)) + 1.0)
    return grad * ((1.0 - rest) + x * rest * (1.0 - rest) * 2.0 * factor * (1.0 + 3 * 0.044715 * x * x))


def by(tanh: Callable[[torch.Tensor], torch.Tensor]) -> Callable[..., torch.Tensor]:
    def kernel(old: torch.Tensor, new: torch.Tensor, gate: torch.Tensor) -> torch.Tensor:
        share = 1.0 / (1.0 + torch.exp(-gate))
        return (1.0 - share) * tanh(new) + share * old

    return kernel


RIGHT: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "as `pypto-op api tanh` says": lambda x: 2.0 / (1.0 + torch.exp(-2.0 * x)) - 1.0,
    "by a sigmoid": lambda x: 2.0 * torch.sigmoid(2.0 * x) - 1.0,
    "by one exponential": lambda x: 1.0 - 2.0 / (torch.exp(2.0 * x) + 1.0),
    "by the size": lambda x: torch.sign(x) * (1.0 - torch.exp(-2.0 * x.abs())) / (1.0 + torch.exp(-2.0 * x.abs())),
    "by expm1": lambda x: torch.expm1(2.0 * x.clamp(max=40.0)) / (torch.expm1(2.0 * x.clamp(max=40.0)) + 2.0),
}

WRONG: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "rounded to 16 bits": lambda x: torch.tanh(x).half().float(),
    "of 16 bits": lambda x: torch.tanh(x.bfloat16().float()),
    "a hundredth too much": lambda x: torch.tanh(1.01 * x),
    "nothing beside 0": lambda x: torch.where(x.abs() < 1e-5, 0.0, torch.tanh(x)),
    "a sigmoid": torch.sigmoid,
}


@pytest.mark.parametrize("scale", [1e-4, 1e-2, 1.0, 100.0])
@pytest.mark.parametrize("name", RIGHT)
def test_by_an_exponential_it_is_right(name: str, scale: float) -> None:
    for seed in range(4):
        verdict = Judge(cell, values(seed, scale), get_policy("twin@2"))(by(RIGHT[name]))
        assert verdict.status == "PASS", (seed, verdict.summary)


@pytest.mark.parametrize("ends", [(-1.0, 1.0), (-6.0, 0.0), (-6.0, -3.0), (-8.0, -4.0), (3.0, 8.0)])
def test_beside_minus_1_each_form_is_right(ends: tuple[float, float]) -> None:
    """Two forms of three were refused where all of x lay below -3."""
    forms = [lambda grad, x, tanh=tanh: slope(grad, x, tanh) for tanh in RIGHT.values()]
    for seed in range(3):
        generator = torch.Generator().manual_seed(seed)
        x = ends[0] + (ends[1] - ends[0]) * torch.rand(51, 64, generator=generator)
        judge = Judge(slope, (torch.randn(51, 64, generator=generator), x), get_policy("twin@2"))
        for form in (*forms, slope_by_sigmoid):
            verdict = judge(form)
            assert verdict.status == "PASS", (seed, verdict.summary)
        assert not judge.takes(lambda grad, x: slope(grad, x, WRONG["rounded to 16 bits"]))


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_stays_wrong(name: str) -> None:
    refused = [
        scale for scale in (1e-4, 1e-2, 1.0) if not Judge(cell, values(1, scale), get_policy("twin@2")).takes(by(WRONG[name]))
    ]
    assert 1e-2 in refused or 1e-4 in refused, refused


@pytest.mark.parametrize("twin", ORDERS)
def test_special_values_and_other_types_stay(twin: str) -> None:
    special = torch.tensor([torch.inf, -torch.inf, torch.nan, 0.0, 1e30, -1e30, 60.0, -60.0])
    with Reordered(twin):
        found, narrow = torch.tanh(special), torch.tanh(special.bfloat16())
    assert torch.equal(found.nan_to_num(7.0), torch.tanh(special).nan_to_num(7.0))
    assert torch.equal(narrow.nan_to_num(7.0), torch.tanh(special.bfloat16()).nan_to_num(7.0))
