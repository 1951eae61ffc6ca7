"""What the calls before the judged one are made with (`run/inputs/before.py`, `run/processes/earlier.py`)."""

from __future__ import annotations

from typing import Any

import torch

from pypto_op.triton.run.inputs import before
from pypto_op.triton.run.inputs.packing import map_tensors, same_layout
from pypto_op.triton.run.processes import model as models
from pypto_op.triton.run.processes.earlier import Earlier


class Counting(torch.nn.Module):
    """Adds up what it is given, and counts."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(3, 8))
        self.turn = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.turn += 1
        self.total += x
        return self.total.clone()


def test_each_of_several_calls_has_values_of_its_own() -> None:
    base, seen = [torch.randn(3, 8)], []
    for shift in before.calls(before.SEVERAL):
        working = map_tensors(base, same_layout)
        before.fill(working, base, before.SEVERAL, shift)
        seen.append(working[0])
    assert len(seen) == before.CALLS
    assert not any(torch.equal(one, other) for at, one in enumerate(seen) for other in [*base, *seen[:at]])


def test_whole_numbers_alone_stay_in_several_calls() -> None:
    base = [torch.randint(0, 9, (20,))]
    working = map_tensors(base, same_layout)
    before.fill(working, base, before.SEVERAL, 3)
    assert torch.equal(working[0], base[0])


def test_another_model_is_called_as_often_and_with_the_same() -> None:
    def call(model: Any, inputs: Any) -> Any:
        return model(*inputs)

    earlier, first, second = Earlier(), Counting(), Counting()
    earlier.begin([torch.randn(3, 8)], reloads=False)
    assert earlier.make(first, call, Counting, before.KEPT) is first and first.turn == before.CALLS
    earlier.repeat(second, call, lambda tensor: tensor)
    assert second.turn == before.CALLS and torch.equal(first.total, second.total)


def test_a_number_among_plain_attributes_is_kept_like_a_buffer() -> None:
    model = Counting()
    stood = models.kept_by(model)
    assert models.kept_by(model) == stood
    model.turn += 1
    assert models.kept_by(model) != stood
