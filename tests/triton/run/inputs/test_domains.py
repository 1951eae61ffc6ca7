"""Inputs come to where a formula ends that is right for the task's own range alone (`run/inputs/domains.py`)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from pypto_op.triton.run.inputs import domains, filled, idle, reaching

DRAWS = torch.Generator().manual_seed(0)
EVEN = torch.rand(9, 20, generator=DRAWS)
NORMAL = torch.randn(9, 20, generator=DRAWS)


def _idle(call: Callable[[], Any]) -> dict[str, bool]:
    with idle.Idle(Path(__file__)) as watch:
        found = call()
    return watch.idle(found)


CALLS = {
    "gamma": (lambda x: torch.lgamma(x), EVEN * 20 + 5, domains.NEAR),
    "its derivative": (lambda x: torch.digamma(x), EVEN + 2, domains.NEAR),
    "an inverse": (lambda x: torch.erfinv(x), EVEN * 1.8 - 0.9, domains.ENDS),
    "an inverse of probabilities": (lambda x: torch.special.ndtri(x), EVEN * 0.9 + 0.05, domains.ENDS),
    "a power less one": (lambda x: torch.expm1(x), EVEN + 0.2, domains.NEARLY),
    "a logarithm beside one": (lambda x: torch.log1p(x), EVEN + 0.2, domains.NEARLY),
    "a product": (lambda x: x.prod(-1), EVEN + 0.5, domains.FACTOR),
    "a running product": (lambda x: x.cumprod(-1), NORMAL, domains.FACTOR),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_way_comes_to_where_a_formula_ends(name: str) -> None:
    call, own, side = CALLS[name]
    before = _idle(lambda: call(own))
    mine = [key for key in before if f"({side})" in key]
    assert len(mine) == 1
    ways = dict(reaching.reaching([own], {mine[0]: False}))
    come = [kind for kind, (moved,) in ways.items() if mine[0].partition(" in ")[0] not in str(_idle(lambda m=moved: call(m)))]
    assert come
    assert all(bool(call(ways[kind][0]).isfinite().all()) for kind in come if kind.startswith(f"{reaching.WITHIN} {side}"))


def test_nothing_to_the_power_of_nothing_is_met() -> None:
    whole = torch.randint(0, 4, EVEN.shape, generator=DRAWS).float()
    (key,) = (key for key in _idle(lambda: torch.pow(EVEN, whole)) if domains.FACTOR in key)
    ways = dict(reaching.reaching([EVEN, whole], {key: False}))
    assert any(bool(((one == 0) & (two == 0)).any()) for one, two in ways.values())
    assert not any(domains.FACTOR in key for key in _idle(lambda: torch.pow(EVEN, 3)))


def test_a_layer_comes_below_all_numbers_that_hide() -> None:
    torch.manual_seed(0)
    layer = nn.Linear(20, 6)

    def greatest(x: torch.Tensor) -> torch.Tensor:
        return layer(x).amax(-1)

    keys = {key: False for key in _idle(lambda: greatest(NORMAL)) if domains.DEEP in key}
    assert len(keys) == 1
    ways = dict(reaching.reaching([NORMAL], keys, weights=True))
    filled.turn(layer, filled.WEIGHTS)
    far = {name: greatest(inputs[0]) for name, inputs in ways.items() if filled.WEIGHTS in name}
    assert any(bool((best < -domains.DEPTH).all()) for best in far.values())


@pytest.mark.parametrize(
    ("forward", "found"),
    [
        (lambda: torch.nn.functional.one_hot(NORMAL.argmax(1), 20).float().mean(0), True),
        (lambda: NORMAL.argmax(1) + 0.5, True),
        (lambda: NORMAL.amax(1), False),
        (lambda: NORMAL.max(1)[0], False),
    ],
)
def test_the_first_of_equal_elements_is_meant_where_its_place_is_used(forward: Callable[[], Any], found: bool) -> None:
    assert any("(ties)" in key for key in _idle(forward)) is found
