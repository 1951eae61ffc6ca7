"""Where a golden folds nothing, the orders are samples of its rounding errors, and nothing exact moves."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
import torch
from tests.twins.honest_forms import Judge

from pypto_op.documents.policy import get_policy
from pypto_op.twins.orders import ORDERS
from pypto_op.twins.reordering import TWINS, Reordered


def noise(*shape: int, seed: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def carried(reward: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """The advantage of each step, from the last to the first: nothing is folded, much cancels."""
    total, rows = torch.zeros_like(reward[0]), []
    for step in reversed(range(len(reward))):
        total = reward[step] + 0.99 * value[step + 1] - value[step] + 0.9 * total
        rows.append(total)
    return torch.stack(rows)


def value_first(reward: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """The same sum, the value taken off before anything is added."""
    total, rows = torch.zeros_like(reward[0]), []
    for step in reversed(range(len(reward))):
        total = total * 0.9 + (value[step + 1] * 0.99 + (reward[step] - value[step]))
        rows.append(total)
    return torch.stack(rows)


WRONG: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "carried in 16 bits": lambda reward, value: carried(reward, value).bfloat16().float(),
    "one term less": lambda reward, value: carried(reward, value) - 1e-5 * value[:-1],
    "another factor": lambda reward, value: carried(reward * 1.00001, value),
}


BY_LUCK = (45, 79, 163, 199, 207, 217, 246, 262)
"""Draws in which the golden's own error happened to be small: the eight of 300 that refused another order of the same terms."""


def judge(seed: int) -> Judge:
    values = 1e4 * noise(6, 40, seed=seed), 1e4 * noise(7, 40, seed=1000 + seed)
    return Judge(carried, values, get_policy("twin@2"), behind=get_policy("allclose@1"))


@pytest.mark.parametrize("seed", BY_LUCK)
def test_another_order_of_three_terms_is_natural_whatever_the_draw(seed: int) -> None:
    assert judge(seed).takes(value_first)


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_stays_wrong(name: str) -> None:
    assert not any(judge(seed).takes(WRONG[name]) for seed in range(5))


def twin(name: str, golden: Callable[[], torch.Tensor]) -> torch.Tensor:
    with Reordered(name):
        return golden()


@pytest.mark.parametrize("golden", [torch.add, torch.sub, lambda x, y: torch.addcmul(x, y, y)], ids=["add", "sub", "addcmul"])
def test_each_order_rounds_some_sums_to_the_other_side(golden: Callable[..., torch.Tensor]) -> None:
    x, y = noise(4000, seed=1), noise(4000, seed=2)
    plain, exact = golden(x, y), golden(x.double(), y.double())
    made = {name: twin(name, lambda: golden(x, y)) for name in TWINS}
    assert torch.equal(made["golden"], plain)
    moved = {name: made[name] != plain for name in ORDERS}
    for name, where in moved.items():
        assert 0.1 < float(where.double().mean()) < 0.9, name
        step = (torch.nextafter(made[name], plain) == plain) | ~where
        assert bool(step.all()) or golden not in (torch.add, torch.sub), name
        assert float((made[name].double() - exact).mean().abs()) < 1e-8, name
    assert len({tuple(where.tolist()) for where in moved.values()}) == len(ORDERS)


@pytest.mark.parametrize("scale", [1.0, 3e-30, 2e30])
def test_the_share_that_moves_is_what_was_lost(scale: float) -> None:
    """Of sums that lose a quarter of half a place, a quarter moves; of those in the middle, all; of exact ones, none."""
    base = torch.full((40000,), scale) + scale * torch.rand(40000, generator=torch.Generator().manual_seed(8))
    half = (torch.nextafter(base, torch.full_like(base, torch.inf)) - base) / 2
    for share in (0.0, 0.25, 0.5, 0.75, 0.9999):
        for sign in (1.0, -1.0):
            moved = twin("reversed", lambda s=sign * share: base + s * half) - base
            near, allowed = {0.0: (0.0, 0.0), 0.9999: (1.0, 0.001)}.get(share, (share, 0.02 if scale > 1e-20 else 0.51))
            assert abs(float((moved != 0).double().mean()) - near) <= allowed, (share, sign)
            assert bool((moved.abs() <= 2.0 * half).all()) and bool((moved * sign >= 0).all())


def test_a_term_that_was_written_into_comes_from_nowhere() -> None:
    x, y, large = noise(1000, seed=9), noise(1000, seed=10), 1000.0 * noise(1000, seed=11)

    def written(into: int, value: float) -> torch.Tensor:
        factor = [x.clone(), y.clone()]
        term = factor[0] * factor[1]
        [term, *factor][into].fill_(value)
        return term + torch.where(large > 0, large.round(), 7.0)

    for name in ORDERS:
        for into, value in itertools.product(range(3), (0.0, torch.inf)):
            found = twin(name, lambda n=into, v=value: written(n, v))
            assert torch.allclose(found, written(into, value), rtol=1e-6, atol=0.0), (name, into, value)


def test_what_is_exact_stays() -> None:
    count = torch.arange(1000.0)
    chosen = (noise(1000, seed=3) > 0).float()
    large = noise(1000, seed=4)
    for name in ORDERS:
        assert torch.equal(twin(name, lambda: count + 1.0), count + 1.0)
        assert torch.equal(twin(name, lambda: count - 3 * count), -2 * count)
        assert torch.equal(twin(name, lambda: large * chosen + 0.0 * large), large * chosen)
        assert torch.equal(twin(name, lambda: large - large), torch.zeros(1000))


def test_special_values_and_other_types_stay() -> None:
    special = torch.tensor([torch.inf, -torch.inf, torch.nan, 0.0, -0.0, 3e38, 1e-45])
    other = torch.tensor([1.0, 1.0, 1.0, 0.0, -0.0, 3e38, 1e-45])
    for name in ORDERS:
        assert torch.equal(twin(name, lambda: special + other).nan_to_num(7.0), (special + other).nan_to_num(7.0))
        for dtype in (torch.bfloat16, torch.float64, torch.int32):
            x, y = (100 * noise(64, seed=5)).to(dtype), torch.ones(64, dtype=dtype)
            assert torch.equal(twin(name, lambda x=x, y=y: x + y), x + y)


def test_the_same_sum_twice_is_the_same() -> None:
    x, y = noise(1000, seed=6), noise(1000, seed=7)
    for name in ORDERS:
        assert bool(twin(name, lambda: (x + y) == (x + y)).all())


OTHER_TERMS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "a truth value": lambda x: x * 0 + True,
    "truth values": lambda x: x.round() + (x > 0),
    "whole numbers": lambda x: x.round() + x.int(),
    "unsigned numbers added": lambda x: x.round() + x.abs().to(torch.uint8),
    "unsigned numbers taken off": lambda x: x.round() - x.abs().to(torch.uint8),
    "a number less a tensor": lambda x: 3 - x.round(),
    "added in place": lambda x: x.round().add_(x > 0),
    "half precision": lambda x: x.round() + x.round().half(),
}


@pytest.mark.parametrize("name", OTHER_TERMS)
@pytest.mark.parametrize("twin", ORDERS)
def test_terms_of_other_types_run_and_what_is_exact_stays(name: str, twin: str) -> None:
    x = 9 * noise(64, seed=3)
    with Reordered(twin):
        found = OTHER_TERMS[name](x)
    assert torch.equal(found, OTHER_TERMS[name](x)) and found.dtype == torch.float32


def pulled(values: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
    """A mean of two values, weighted by exponentials."""
    one, two = torch.exp(keys[0] - keys.amax(0)), torch.exp(keys[1] - keys.amax(0))
    return (one * values[0] + two * values[1]) / (one + two)


def pulled_by_shares(values: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
    """The same, the weights divided first."""
    one, two = torch.exp(keys[0] - keys.amax(0)), torch.exp(keys[1] - keys.amax(0))
    return values[0] * (one / (one + two)) + values[1] * (two / (one + two))


def test_terms_that_nearly_cancel_are_rounded_otherwise_too() -> None:
    """Of 60 draws seven refused a right kernel: the orders rounded the terms alike, and the sum not at all."""
    for seed in range(60):
        values = 1e-4 * noise(2, 256, seed=seed), 1e-4 * noise(2, 256, seed=1000 + seed)
        assert Judge(pulled, values, get_policy("twin@2")).takes(pulled_by_shares), seed


@pytest.mark.parametrize("twin_name", ORDERS)
def test_a_product_a_quotient_or_a_root_that_is_exact_stays_in_its_sum(twin_name: str) -> None:
    x, flags = noise(4000, seed=1), (noise(4000, seed=2) > 0).float()
    whole = torch.arange(4000.0)
    for golden in (lambda: x * flags + 0.0, lambda: x / 2.0 + 0.0, lambda: (whole * whole).sqrt() + 0.0):
        assert torch.equal(twin(twin_name, golden), golden())
