"""Devices raise to a broken power by exp(p * log(x)); far from 1 that errs by several roundings, which are natural."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from tests.twins.honest_forms import Judge

from pypto_op.documents.policy import get_policy
from pypto_op.twins.orders import ORDERS
from pypto_op.twins.reordering import Reordered

Root = Callable[[torch.Tensor], torch.Tensor]


def values(seed: int, scale: float) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    grad, x = scale * torch.randn(2, 64, 96, generator=generator)
    return grad, x


def gradient(root: Root) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    """The gradient of a row over its root mean square: it cancels here and there."""

    def kernel(grad: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        factor = root((x * x).mean(dim=-1, keepdim=True) + 1e-6)
        normal = x * factor
        return factor * (grad - normal * (grad * normal).mean(dim=-1, keepdim=True))

    return kernel


GOLDENS: dict[str, Root] = {
    "rsqrt": torch.rsqrt,
    "a power": lambda x: x**-0.5,
    "a quotient": lambda x: 1.0 / torch.sqrt(x),
    "a quotient of tensors": lambda x: torch.ones_like(x) / torch.sqrt(x),
}

RIGHT: dict[str, Root] = {
    "by a logarithm": lambda x: torch.exp(-0.5 * torch.log(x)),
    "by a logarithm to base 2": lambda x: torch.exp2(-0.5 * torch.log2(x)),
    "by a quotient": lambda x: 1.0 / torch.sqrt(x),
    "rsqrt": torch.rsqrt,
}

WRONG: dict[str, Root] = {
    "rounded to float16": lambda x: torch.rsqrt(x).half().float(),
    "a logarithm in bfloat16": lambda x: torch.exp((-0.5 * torch.log(x)).bfloat16().float()),
    "a ten thousandth too much": lambda x: 1.0001 * torch.rsqrt(x),
    "of the root": lambda x: torch.rsqrt(torch.sqrt(x)),
}


@pytest.mark.parametrize("scale", [1e-2, 1.0, 1e4])
@pytest.mark.parametrize("name", RIGHT)
@pytest.mark.parametrize("golden", GOLDENS)
def test_a_power_by_a_logarithm_is_right(golden: str, name: str, scale: float) -> None:
    """Among numbers of 10000 the judge refused it: each element was off by ten roundings, and none by a hundredth of rtol."""
    for seed in range(4):
        verdict = Judge(gradient(GOLDENS[golden]), values(seed, scale), get_policy("twin@2"))(gradient(RIGHT[name]))
        assert verdict.status == "PASS", (seed, verdict.summary)


@pytest.mark.parametrize("scale", [1e-2, 1e4])
@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("golden", GOLDENS)
def test_what_is_wrong_stays_wrong(golden: str, name: str, scale: float) -> None:
    assert not Judge(gradient(GOLDENS[golden]), values(1, scale), get_policy("twin@2")).takes(gradient(WRONG[name]))


@pytest.mark.parametrize("twin", ORDERS)
def test_special_values_whole_powers_and_other_types_stay(twin: str) -> None:
    special = torch.tensor([torch.inf, -torch.inf, torch.nan, 0.0, -0.0, -1.0, 1e-44, 1.0])
    with Reordered(twin):
        found, narrow, cubes = torch.rsqrt(special), torch.rsqrt(special.half()), special**3
    close = {"rtol": 1e-4, "atol": 0.0, "equal_nan": True}
    torch.testing.assert_close(found, torch.rsqrt(special), **close)
    assert torch.equal(narrow.nan_to_num(7.0), torch.rsqrt(special.half()).nan_to_num(7.0))
    assert torch.equal(cubes.nan_to_num(7.0), (special**3).nan_to_num(7.0))
