"""Many inputs are drawn on the device, few on the CPU, and what cannot be drawn there on the CPU after all."""

from __future__ import annotations

import pytest
import torch

from pypto_op.triton.run.inputs.draws import MANY, MOST, Draws

THERE = torch.device("meta")
"""Stands for a device that this machine lacks: tensors without values."""


def _where(draws: Draws, seed: int) -> str:
    ((tensor,),) = draws.of(seed)
    return tensor.device.type


@pytest.mark.parametrize(
    ("device", "count", "place"),
    [(THERE, MANY, "meta"), (THERE, MOST + 1, "cpu"), (THERE, MANY - 1, "cpu"), (torch.device("cpu"), MANY, "cpu")],
)
def test_only_many_inputs_are_drawn_on_the_device(device: torch.device, count: int, place: str) -> None:
    draws = Draws(device, lambda: [[torch.rand(1).expand(count)]])
    assert [_where(draws, 1), _where(draws, 2)] == [place, place]


def test_inputs_that_need_the_cpu_are_drawn_there_from_the_seed() -> None:
    def ask() -> list[list[torch.Tensor]]:
        return [[torch.from_numpy(torch.rand(MANY).numpy())]]

    draws = Draws(THERE, ask)
    ((first,),), ((again,),), ((other,),) = draws.of(1), draws.of(1), draws.of(2)
    assert torch.equal(first, again) and not torch.equal(first, other)


def test_a_task_that_fails_everywhere_says_so() -> None:
    def ask() -> None:
        raise ValueError("no inputs")

    with pytest.raises(ValueError, match="no inputs"):
        Draws(THERE, ask).of(1)


def test_an_iterator_is_taken_from_the_cpu() -> None:
    draws = Draws(THERE, lambda: iter([[torch.rand(MANY)]]))
    ((tensor,),) = list(draws.of(1))
    assert tensor.device.type == "cpu"


def test_whole_numbers_that_are_drawn_one_by_one_may_repeat() -> None:
    places, order = torch.randint(0, 99, (8,)), torch.randperm(8)

    def ask() -> list[torch.Tensor]:
        drawn = torch.randint(0, 99, (8,))
        return [drawn, drawn.int(), drawn.view(2, 4), torch.randperm(8), drawn.sort().values, drawn.clone().sort().values, order]

    draws = Draws(torch.device("cpu"), ask)
    assert [draws.may_repeat(tensor) for tensor in draws.of(1)] == [True, True, True, False, False, False, False]
    assert not draws.may_repeat(places)
