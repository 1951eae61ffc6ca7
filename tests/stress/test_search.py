"""The search on goldens whose cancellation is known: it finds it, repeats itself, and says when there is none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.quickly import examples

from pypto_op.stress.patterns import stressed
from pypto_op.stress.search import Found, Goal, is_useful, search


def inputs(dtype: torch.dtype = torch.float32, **shapes: tuple[int, ...]) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(1)
    return {name: torch.randn(shape, generator=generator).to(dtype) for name, shape in shapes.items()}


def median_condition(terms: torch.Tensor, result: torch.Tensor) -> float:
    return float(torch.where(result == 0, 0.0, terms / result.abs()).median())


def difference(made: dict[str, torch.Tensor]) -> float:
    a, b = made["a"].double(), made["b"].double()
    return median_condition(a.abs() + b.abs(), a - b)


def row_sum(made: dict[str, torch.Tensor]) -> float:
    a = made["a"].double()
    return median_condition(a.abs().sum(-1), a.sum(-1))


def product(made: dict[str, torch.Tensor]) -> float:
    a, b = made["a"].double(), made["b"].double()
    return median_condition(a.abs() @ b.abs(), a @ b)


def square_sum(made: dict[str, torch.Tensor]) -> float:
    a = made["a"].double()
    return median_condition((a * a).sum(-1), (a * a).sum(-1))


def found(measure: Callable[[dict[str, torch.Tensor]], float], tensors: dict[str, Any], **goal: Any) -> Found:
    def score(recipe: list[dict[str, Any]]) -> float:
        torch.manual_seed(0)
        return measure(stressed(tensors, recipe))

    return search(tensors, score, Goal(**{"condition": 1e5, **goal}))


@pytest.mark.parametrize(
    ("measure", "tensors"),
    [
        (difference, inputs(a=(20, 30), b=(20, 30))),
        (row_sum, inputs(a=(20, 31))),
        (product, inputs(a=(20, 64), b=(64, 20))),
    ],
    ids=["difference", "sum", "product"],
)
def test_it_finds_the_structure_that_cancels(measure: Any, tensors: dict[str, Any]) -> None:
    best = found(measure, tensors)
    assert best.reached >= 1e5 > 100 > best.plain
    assert best.reached < 1e8, "not more than was asked for by far: every honest kernel would drown in it"
    assert 1 <= len(best.recipe) <= 2
    assert best == found(measure, tensors), "the same seed, the same recipe"


def test_it_says_when_nothing_cancels() -> None:
    best = found(square_sum, inputs(a=(8, 16)))
    assert best.recipe == [] and best.reached == best.plain == pytest.approx(1.0)


def test_a_narrow_dtype_reaches_what_it_can_and_no_exact_zeros() -> None:
    best = found(difference, inputs(torch.bfloat16, a=(20, 30), b=(20, 30)))
    assert 0.5 / 2**-7 <= best.reached < 1e4
    assert best.recipe


def test_it_never_costs_more_than_its_budget() -> None:
    calls = []

    def score(recipe: list[dict[str, Any]]) -> float:
        calls.append(recipe)
        return 1.0

    best = search(inputs(a=(4, 4, 4), b=(4, 4, 4), c=(4, 4, 4)), score, Goal(1e9, runs=20))
    assert len(calls) == best.runs <= 25 and best.recipe == []


def test_inputs_without_a_float_tensor_have_no_recipe() -> None:
    best = search({"n": 3, "i": torch.arange(4), "s": torch.tensor(2.0)}, lambda recipe: 1.0, Goal(1e5))
    assert best.recipe == [] and best.runs == 1


@pytest.mark.slow
@settings(max_examples=examples(40))
@given(st.integers(0, 10**6), st.integers(1, 30))
def test_any_seed_and_budget_ends_with_the_best_that_was_seen(seed: int, runs: int) -> None:
    tensors = inputs(a=(6, 8), b=(6, 8))
    seen: list[float] = []

    def score(recipe: list[dict[str, Any]]) -> float:
        torch.manual_seed(0)
        seen.append(difference(stressed(tensors, recipe)))
        return seen[-1]

    best = search(tensors, score, Goal(1e4, seed=seed, runs=runs))
    assert best.reached in seen
    assert best.recipe or best.reached == best.plain


def test_an_answer_that_tells_nothing_is_no_success() -> None:
    plain = [torch.randn(4).double()]
    varied, limit = [torch.randn(4).double()], [65504.0]
    assert is_useful(varied, plain, limit)
    assert not is_useful([torch.full((4,), 2.0).double()], plain, limit)
    assert not is_useful([torch.tensor([1.0, torch.nan, 2.0, 3.0]).double()], plain, limit)
    assert not is_useful([torch.tensor([1.0, 4e4, 2.0, 3.0]).double()], plain, limit)
    assert is_useful([torch.arange(4)], [torch.arange(4)], limit)
